"""Counts of the threads with contexts open: while they are zero, calls look at no thread's state.

A context (:mod:`~tensorplug.core.contexts`) cannot leave a count in the instruction that ends it. So a
thread counts once, however many contexts it opens, and :func:`settle` takes that back when somebody has
looked at its state in vain. Until then a count is too high, which costs time only. What changes a count and
what notes that stand side by side, with no call between them that an interrupt might come with.
"""

from __future__ import annotations

from typing import Any

from ..contexts import NOTHING, thread
from .state import dispatch_state


class Counted:
    """Which counts a thread has gone into; they go with it."""

    __slots__ = ("grad_disabled", "inference", "layers", "preferences")

    def __init__(self) -> None:
        self.grad_disabled = False
        self.inference = False
        self.layers = False
        self.preferences = False

    def __del__(self) -> None:
        dispatch_state.grad_disabled -= self.grad_disabled
        dispatch_state.inference -= self.inference
        dispatch_state.layers_active -= self.layers + self.preferences
        dispatch_state.preferences -= self.preferences


def _counted() -> Counted:
    counted = thread.counted
    if counted is None:
        counted = thread.counted = Counted()
    return counted


def count_grad_disabled() -> None:
    """Have calls ask this thread whether it records."""
    counted = _counted()
    if not counted.grad_disabled:
        dispatch_state.grad_disabled += 1
        counted.grad_disabled = True


def count_inference() -> None:
    """Have calls ask this thread whether what they make is an inference tensor."""
    counted = _counted()
    if not counted.inference:
        dispatch_state.inference += 1
        counted.inference = True


def count_layers() -> dict[str, Any]:
    """Have calls look for layers of this thread; return what the context that asks sets besides."""
    counted = _counted()
    if not counted.layers:
        dispatch_state.layers_active += 1
        counted.layers = True
    return {"layered": True}


def count_preferences() -> dict[str, Any]:
    """Have calls ask this thread which backends it prefers; return what the context sets besides."""
    counted = _counted()
    if not counted.preferences:
        dispatch_state.layers_active += 1
        dispatch_state.preferences += 1
        counted.preferences = True
    return {"layered": True}


def settle() -> None:
    """Take back the counts of this thread, those that no open context needs."""
    counted = thread.counted
    if counted is None:
        return
    if thread.close is NOTHING:  # a context that is open may put back what it found
        if counted.grad_disabled and thread.enabled:
            dispatch_state.grad_disabled -= 1
            counted.grad_disabled = False
        if counted.inference and not thread.inference:
            dispatch_state.inference -= 1
            counted.inference = False
    if thread.layered:
        return
    if counted.layers:
        dispatch_state.layers_active -= 1
        counted.layers = False
    if counted.preferences:
        dispatch_state.layers_active -= 1
        dispatch_state.preferences -= 1
        counted.preferences = False


def recording_on() -> bool:
    """Return whether this thread records: in inference mode no call is recorded."""
    if thread.enabled and not thread.inference:
        counted = thread.counted
        if counted is not None and counted.grad_disabled:
            settle()
        return True
    return False
