"""Backward passes that begin within others, as checkpoints and custom Functions have them.

Python bounds how deep the calls of a thread may lie in each other. So after some passes within passes the
next one runs in a thread of its own, for which this one waits, as in torch.
"""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

from tensorplug.core.contexts import NOTHING, thread

from ..graph.nodes import Node
from .backward_callbacks import queued, running

if TYPE_CHECKING:
    from .engine import BackwardPass

#: Passes within each other in one thread. torch has 60, which take fewer of Python's calls there.
MOST = 25


def run(pass_: BackwardPass, roots: list[tuple[Any, Any]]) -> None:
    """Run a pass that begins within another."""
    depth = running.depth
    if depth == MOST:
        _run_apart(pass_, roots)
        return
    running.depth = depth + 1
    try:
        pass_.run(roots)
    finally:
        running.depth = depth


def _run_apart(pass_: BackwardPass, roots: list[tuple[Any, Any]]) -> None:
    """Run a pass in a new thread, in the state that this one is in."""
    state = vars(thread) | {"close": NOTHING, "counted": None}  # what it counts, this thread counts
    outer = running.current
    first = roots[0][0]
    key = first.key if isinstance(first, Node) else first._key
    around = key.runtime.current_queue(key.device.index or 0)
    errors: list[BaseException] = []

    def work() -> None:
        vars(thread).update(state)
        running.current = outer
        try:
            if around is None:
                pass_.run(roots)
            else:
                with around:
                    pass_.run(roots)
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    worker.start()
    worker.join()
    callbacks = queued.pop(worker.ident or 0, None)
    if callbacks:
        queued.setdefault(threading.get_ident(), []).extend(callbacks)
    if errors:
        raise errors.pop()  # else it would hold itself by its traceback
