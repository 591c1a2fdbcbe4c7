"""Calls in a child process, which they may end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def in_child(work: Callable[[Callable[[str], None]], None], seconds: int) -> tuple[int, list[str]]:
    """Do some work in a forked child: return its exit status, and the lines that the work told before.

    Parameters
    ----------
    work : callable
        Gets a function that tells a line; what it told is known however the child ends.
    seconds : int
        After them the child ends by SIGALRM, also within a kernel.

    Returns
    -------
    status : int
        0 if the work came to its end, 1 if it raised, the negative number of a signal that ended the child.
    lines : list of str

    Examples
    --------
    >>> import os, signal
    >>> from tensorplug.testing import children
    >>> children.in_child(
    ...     lambda tell: (tell("begun"), os.kill(os.getpid(), signal.SIGKILL)), seconds=10
    ... )
    (-9, ['begun'])
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(seconds)
            work(lambda line: _write(writing, line))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = told.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lines


def _write(descriptor: int, line: str) -> None:
    os.write(descriptor, f"{line}\n".encode())
