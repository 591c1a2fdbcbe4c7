"""The worker processes of a loader, as the main process sees them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from .shared import receive
from .signals import signals_put_off
from .workers import Job, run

# A worker's end shows in its sentinel at once, unless a child of its own keeps that open; then it
# is noticed when this time has passed.
_CHECK_SECONDS = 0.5
# How long a worker may take to finish the sample that it is reading, and then to obey a signal.
_GRACE_SECONDS, _SIGNAL_SECONDS = 5.0, 1.0


# The main process's ends of all pipes. Whatever is forked has to close its copies, or else no worker
# would notice that the main process has closed, or lost, its own.
_ends: weakref.WeakSet[Connection] = weakref.WeakSet()


def _close_copies() -> None:
    for end in list(_ends):
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)


class WorkerDied(RuntimeError):
    """A worker process ended although it was needed."""


class WorkerPool:
    """Worker processes with a pipe to and from each.

    They end when the pool is closed or collected, or when the interpreter exits.

    Parameters
    ----------
    context : multiprocessing context
        How they are started.
    job : Job
        What they do.
    """

    def __init__(self, context: Any, job: Job) -> None:
        self._processes: list[Any] = []
        self._tasks: list[Connection] = []
        self._results: list[Connection] = []
        self._finalizer = weakref.finalize(
            self, _shut_down, self._processes, self._tasks, self._results, os.getpid()
        )
        try:
            for worker in range(job.num_workers):
                with signals_put_off():
                    self._start(context, job, worker)
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, job: Job, worker: int) -> None:
        task_end, task_start = context.Pipe(duplex=False)
        result_end, result_start = context.Pipe()  # a socket: it takes file descriptors
        self._tasks.append(task_start)
        self._results.append(result_end)
        _ends.update((task_start, result_end))
        process = context.Process(
            target=run,
            args=(job, worker, task_end, result_start),
            name=f"tensorplug-worker-{worker}",
            daemon=True,
        )
        try:
            process.start()
        finally:
            task_end.close()
            result_start.close()
        self._processes.append(process)

    def processes(self) -> list[Any]:
        """Return the processes."""
        return list(self._processes)

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self._processes]

    def send(self, worker: int, task: Any) -> None:
        """Give a worker a task.

        Raises
        ------
        WorkerDied
            If it has ended.
        """
        try:
            self._tasks[worker].send(task)
        except (BrokenPipeError, ConnectionResetError):
            self._raise_death(worker)

    def collect(self, timeout: float | None) -> list[tuple[int, Any, Any]]:
        """Return (worker, head, answer) of all answers that are there, waiting for the first.

        Parameters
        ----------
        timeout : float or None
            Seconds to wait at most; the list is then empty. None waits as long as it takes.

        Raises
        ------
        WorkerDied
            If a worker has ended.
        """
        watched: dict[Any, int] = {end: i for i, end in enumerate(self._results)}
        sentinels = {process.sentinel: i for i, process in enumerate(self._processes)}
        watched |= sentinels
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _CHECK_SECONDS if deadline is None else deadline - time.monotonic()
            ready = wait(list(watched), max(0.0, min(left, _CHECK_SECONDS)))
            if ready:
                break
            for worker, process in enumerate(self._processes):
                with signals_put_off():
                    # Who asks takes the exit code, and an interrupt would lose it.
                    alive = process.is_alive()
                if not alive:
                    self._raise_death(worker)
            if deadline is not None and time.monotonic() >= deadline:
                return []
        for item in ready:
            if item in sentinels:
                self._raise_death(watched[item])
        answers = []
        for item in ready:
            worker = watched[item]
            try:
                head, answer = receive(item)  # type: ignore[arg-type]
            except (EOFError, ConnectionResetError):
                self._raise_death(worker)
            answers.append((worker, head, answer))
        return answers

    def _raise_death(self, worker: int) -> NoReturn:
        process = self._processes[worker]
        with signals_put_off():
            process.join(_SIGNAL_SECONDS)
        pid, code = process.pid, process.exitcode
        self.close(grace=0.0)
        how = f"exited unexpectedly with exit code {code}"
        if code is None:
            how = "closed its pipe unexpectedly"
        elif code < 0:
            how = f"is killed by signal: {signal.strsignal(-code) or -code}"
            if -code == signal.SIGKILL:
                how += ". The system does that when memory runs out"
        raise WorkerDied(f"DataLoader worker (pid {pid}) {how}; it was worker {worker}") from None

    @property
    def closed(self) -> bool:
        """Whether the workers have been ended."""
        return not self._finalizer.alive

    def close(self, grace: float = _GRACE_SECONDS) -> None:
        """End all workers, and wait until they have ended.

        Parameters
        ----------
        grace : float
            Seconds in which a worker may finish what it is reading.
        """
        if self._finalizer.alive:
            _shut_down(self._processes, self._tasks, self._results, os.getpid(), grace)
            self._finalizer.detach()


def _shut_down(
    processes: list[multiprocessing.Process],
    tasks: Sequence[Connection],
    results: Sequence[Connection],
    owner: int,
    grace: float = _GRACE_SECONDS,
) -> None:
    if os.getpid() != owner:
        return  # a forked copy
    try:
        for connection in (*tasks, *results):  # no more tasks; a worker that sends gets an error
            connection.close()
        deadline = time.monotonic() + grace
        left = [process.sentinel for process in processes]
        while left and (seconds := deadline - time.monotonic()) > 0:
            ended = wait(left, seconds)
            left = [sentinel for sentinel in left if sentinel not in ended]
    finally:  # also when an interrupt says that nobody wants to wait
        with signals_put_off():
            _end(processes)
            processes.clear()  # if it was called within a call that was interrupted, that finds none


def _end(processes: Sequence[multiprocessing.Process]) -> None:
    """End processes that have not ended by themselves."""
    for end in ("terminate", "kill"):
        left = [process for process in processes if process.is_alive()]
        for process in left:
            getattr(process, end)()
        for process in left:
            process.join(_SIGNAL_SECONDS)
    for process in processes:
        process.is_alive()  # takes the exit code; who watches them may ask for it
