"""What is called at the end of a backward pass; torch's ``Variable._execution_engine.queue_callback``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _Running(threading.local):
    """The pass that this thread runs, or None, and how many it runs within that."""

    current: Any = None
    depth: int = 0

    @property
    def targets(self) -> bool | None:
        """Whether the pass is for some inputs only; None where there is none."""
        return None if self.current is None else self.current.targets is not None


running = _Running()

#: By thread. A pass looks here when it ends, so that the others pay for no more than an empty dictionary.
queued: dict[int, list[Callable[[], object]]] = {}


def queue_callback(callback: Callable[[], object]) -> None:
    """Call a function when the backward pass that this thread runs is over, the outermost of several.

    Hooks use it for what must wait for all gradients. If the pass breaks off, nothing is called.

    Parameters
    ----------
    callback : callable
        Called without arguments, after those that were queued before.

    Raises
    ------
    RuntimeError
        Where this thread runs no backward pass.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.autograd import Variable
    >>> x = tp.ones(2, requires_grad=True)
    >>> engine = Variable._execution_engine
    >>> _ = x.register_hook(lambda _: engine.queue_callback(lambda: print("over")))
    >>> x.sum().backward()
    over
    """
    thread = threading.get_ident()
    if running.current is None and thread not in queued:  # nor do callbacks run
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    queued.setdefault(thread, []).append(callback)


def end(finished: bool) -> None:
    """Call what was queued for this thread's pass, what these queue included; or forget it."""
    callbacks = queued.get(threading.get_ident(), [])
    try:
        while finished and callbacks:
            callbacks.pop(0)()
    finally:
        queued.pop(threading.get_ident(), None)
