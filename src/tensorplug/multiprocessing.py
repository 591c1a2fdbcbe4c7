"""Python's :mod:`multiprocessing`, with tensors that go to other processes as shared memory.

Everything of the standard module is here. Once this one is imported, a tensor or parameter that is
put into a queue or pipe, or passed to a process, is moved to shared memory, and the receiver gets a
tensor over the same memory rather than a copy. The sender must live until it has been received.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import *  # pyright: ignore[reportWildcardImportFromLibrary]
from multiprocessing.connection import Connection, wait
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.tensor.shared_memory import register
from tensorplug.nn.parameter import Buffer, Parameter

for _class in (Tensor, Parameter, Buffer):
    register(_class)

_GRACE_SECONDS = 5.0


_STRATEGIES = ("file_descriptor", "file_system")
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return the names of ways in which memory can be shared."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the way that was chosen."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember a way to share memory; it goes by file descriptors in either.

    With torch programs choose "file_system" where descriptors run short. Memory has no names here, so
    that none can be left behind, and small batches of workers need no descriptors.

    Raises
    ------
    AssertionError
        If there is no such way.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"set_sharing_strategy(): expected one of {', '.join(_STRATEGIES)}, got {new_strategy!r}"
        )
    _strategy = new_strategy


class ProcessException(Exception):
    """A process that :func:`spawn` started has failed.

    Parameters
    ----------
    msg : str
        What happened.
    error_index : int
        Which process, as it is numbered.
    pid : int
        Its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function has raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended in another way than by return.

    Parameters
    ----------
    msg : str
        What happened.
    error_index : int
        Which process, as it is numbered.
    error_pid : int
        Its process id.
    exit_code : int
        With which code it ended; minus a signal's number if that killed it.
    signal_name : str, optional
        That signal.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), arguments


class ProcessContext:
    """Processes that run one function; what :func:`spawn` returns without `join`."""

    def __init__(self, processes: list[Any], errors: list[Connection]) -> None:
        self.processes = processes
        self._errors = errors
        self._running = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for processes to end; return whether all have.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for the next one to end.
        grace_period : float, optional
            Seconds that the others have to end by themselves after one has failed.

        Raises
        ------
        ProcessRaisedException, ProcessExitedException
            If one has failed. The others are ended.
        """
        if not self._running:
            return True
        failed = None
        for sentinel in wait(list(self._running), timeout):
            index = self._running.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self._running
        self._end_all(grace_period)
        raise self._error(failed)

    def _end_all(self, grace_period: float | None) -> None:
        deadline = time.monotonic() + (grace_period or 0.0)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for end in ("terminate", "kill"):
            left = [process for process in self.processes if process.is_alive()]
            for process in left:
                getattr(process, end)()
            for process in left:
                process.join(_GRACE_SECONDS)
        self._running.clear()

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        pid, code = process.pid, process.exitcode
        try:
            text = pickle.loads(self._errors[index].recv_bytes())
        except (EOFError, OSError):
            pass  # it left no message
        else:
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, pid)
        if code >= 0:
            message = f"process {index} terminated with exit code {code}"
            return ProcessExitedException(message, index, pid, code)
        name = signal.Signals(-code).name
        message = f"process {index} terminated with signal {name}"
        return ProcessExitedException(message, index, pid, code, name)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in processes numbered by i, which are started in a way of one's choice.

    Parameters
    ----------
    fn : callable
        At the top level of a module, so that the processes can import it.
    args : tuple
        Its arguments after the number; tensors among them are shared.
    nprocs : int
        How many processes.
    join : bool
        Wait for all to end. If one fails the others are ended, and this raises.
    daemon : bool
        Whether the processes end with this one.
    start_method : str
        How they are started: "spawn", "fork" or "forkserver".

    Returns
    -------
    ProcessContext or None
        None after a join.

    Raises
    ------
    ProcessRaisedException, ProcessExitedException
        If one fails.
    """
    context: Any = _multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in new interpreters numbered by i, as :func:`start_processes` does."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Connection) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the main process has it as well
    except Exception:
        errors.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)
