"""Saved tensors: their hooks, and what else a node may store (its forward call, ranges, queue)."""

from __future__ import annotations

import os.path
from collections.abc import Callable
from typing import Any

from tensorplug.core.contexts import NOTHING, Context, declare, thread
from tensorplug.core.device import queues
from tensorplug.core.dispatch import layers, profiling
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase, version_of

from .nodes import Node, SavedByHook, node_extra
from .views import edge_of, requires_grad

# pathlib would take a tenth of the import of tensorplug.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
_OWN = tuple(os.path.join(_PACKAGE, name) for name in ("autograd", "core"))  # noqa: PTH118


# Of each thread: pairs of hooks, and the message of the error that they raise instead.
# `recomputed`: of which part of the running program what is saved is computed again, by number; 0 of none.
# `evaluated`: in anomaly mode, the node whose formulas are computed.
declare(
    saved_hooks=(),
    saved_hooks_disabled=None,
    saved_hooks_counted=None,
    recomputed=0,
    evaluated=None,
)

# How many threads have saved_tensors_hooks contexts open; whether anomaly mode is on; and whether a
# profile is taken. What recording looks at is the layer's `watched`.
hooks = 0
anomaly = False
check_nan = True  # in anomaly mode
profiled = False


def update_watched() -> None:
    """Have recordings look here, or not; to look in vain costs time only."""
    dispatch_state.gradient.watched = hooks > 0 or _in_all_threads()


def are_watched() -> bool:
    """Return whether what this thread records is watched; `watched` may say so for longer."""
    return bool(thread.saved_hooks) or _in_all_threads()


def _in_all_threads() -> bool:
    """Return whether what any thread records is watched."""
    return anomaly or profiled or queues.elsewhere > 0


queues.on_change(update_watched)


class saved_tensors_hooks(Context):
    """Pack what nodes save with one function and unpack it with another, within a ``with`` block.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor)`` returns anything.
    unpack_hook : callable
        ``unpack_hook(packed)`` returns a tensor of the same content.

    Examples
    --------
    >>> import tensorplug as tp
    >>> packed = []
    >>> x = tp.ones(2, requires_grad=True)
    >>> with tp.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
    ...     y = x * x
    >>> len(packed)
    2
    """

    #: Whether a captured graph would miss what the hooks do.
    is_opaque: bool = True

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pair = (pack_hook, unpack_hook)

    def _changes(self) -> dict[str, Any]:
        if thread.saved_hooks_disabled is not None:
            raise RuntimeError(thread.saved_hooks_disabled)
        _count_hooks()
        if self.is_opaque:
            layers.note_opaque("saved_tensors_hooks()")
        return {"saved_hooks": (*thread.saved_hooks, self.pair)}


class hooks_set_aside(Context):
    """Leaves this thread's hooks out within a ``with`` block: what is saved there is nobody's."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"saved_hooks": ()}


class _Counted:
    """Whether a thread is counted; goes with it."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False

    def __del__(self) -> None:
        global hooks
        hooks -= self.on
        update_watched()


# As in core.dispatch.counts: what changes the count and what notes that stand side by side, with no call
# between them that an interrupt might come with.
def _count_hooks() -> None:
    global hooks
    counted = thread.saved_hooks_counted
    if counted is None:
        counted = thread.saved_hooks_counted = _Counted()
    if not counted.on:
        hooks += 1
        counted.on = True
    update_watched()


def _settle_hooks() -> None:
    global hooks
    counted = thread.saved_hooks_counted
    if counted is not None and counted.on:
        hooks -= 1
        counted.on = False


def pack(
    saved: tuple[Any, ...], versions: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return what is saved after this thread's innermost hooks packed the tensors in it."""
    if not thread.saved_hooks:
        if thread.close is NOTHING:
            _settle_hooks()
        return saved, versions
    packed = list(saved)
    kept = list(versions)
    for index, value in enumerate(saved):
        if isinstance(value, TensorBase):
            packed[index] = pack_by(value, *thread.saved_hooks[-1])
            kept[index] = None
        elif isinstance(value, (list, tuple)) and any([isinstance(v, TensorBase) for v in value]):
            packed[index] = [
                pack_by(v, *thread.saved_hooks[-1]) if isinstance(v, TensorBase) else v
                for v in value
            ]
            kept[index] = None
    return tuple(packed), tuple(kept)


def pack_by(
    tensor: Any, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
) -> SavedByHook:
    """Return a saved tensor as a pair of hooks packs it."""
    edge = edge_of(tensor) if tensor._state and requires_grad(tensor) else None
    version = version_of(tensor)
    packed = pack_hook(tensor.detach())
    if version_of(tensor) != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
            "hook can not be modified by in-place operations as this can lead to unexpected side-effects; "
            "clone() it first"
        )
    return SavedByHook(packed, unpack_hook, edge)


def watch(node: Any) -> None:
    """Do for a new node what is asked for: pack what it saved; keep the stack, ranges, queue of the call."""
    if hooks:
        node.saved, node.versions = pack(node.saved, node.versions)
    update_watched()  # nobody may have anything to do by now
    if anomaly:
        note_trace(node)
    if profiled and profiling.local.ranges:
        node_extra(node).ranges = profiling.local.ranges
    if queues.elsewhere:
        queue = node.key.runtime.current_queue(node.key.device.index or 0)
        if queue is not None:
            node_extra(node).queue = queue


def set_anomaly(mode: bool, nan: bool = True) -> None:
    """Store the forward call with each node, or stop doing so; whether gradients may be NaN."""
    global anomaly, check_nan
    anomaly, check_nan = mode, nan
    update_watched()


def set_profiled(mode: bool) -> None:
    """Store the open ranges with each node, or stop doing so."""
    global profiled
    profiled = mode
    update_watched()


profiling.on_change(set_profiled)


def note_trace(node: Node) -> None:
    """Keep the Python stack of the forward call with a node, and the node that induced it."""
    import traceback

    # Up to the call from outside of core and autograd, whose compiled functions have no frames.
    stack = traceback.extract_stack()
    while len(stack) > 1 and stack[-1].filename.startswith(_OWN):
        stack.pop()
    extra = node_extra(node)
    extra.forward_trace = "".join(traceback.format_list(stack))
    extra.induced_by = thread.evaluated
