"""Work in a process of its own, so that what takes too long or too much memory ends that process alone."""

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def result(work: Callable[[], Any], seconds: float, memory: int) -> Any:
    """Return what a function returns, which runs in a fork of this process.

    Where the system has no forks it runs here, without limits.

    Parameters
    ----------
    work : callable
        What it returns is pickled.
    seconds : float
        By the clock on the wall, after which it is ended. (A limit on those of the processor would have
        Linux count them in ticks of some milliseconds, for whoever asks.)
    memory : int
        Bytes of addresses that it may have; what asks for more gets a :class:`MemoryError`.

    Raises
    ------
    TimeoutError
        It took longer.
    MemoryError
        The system ended it, as it does where no memory is left.
    RuntimeError
        It ended in another way.
    Exception
        What the function raises.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return work()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(sender, work, memory))
    child.start()
    sender.close()  # else the end of the child's would not end the pipe
    value: tuple[Any, ...] = ()
    if late := not receiver.poll(seconds):
        child.kill()
    else:
        with contextlib.suppress(EOFError):
            value = receiver.recv()
    child.join()
    if late:
        raise TimeoutError(f"more than {seconds} seconds")
    if child.exitcode == -signal.SIGKILL:
        raise MemoryError("more memory than there is")
    if not value:
        raise RuntimeError(f"ended with exit status {child.exitcode}")
    returned, error = value
    if error is not None:
        raise error
    return returned


def _work(sender: Connection, work: Callable[[], Any], memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        value: tuple[Any, Exception | None] = (work(), None)
    except Exception as error:
        value = (None, error)
    sender.send(value)
