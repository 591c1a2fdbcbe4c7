"""Views and in-place writes: how a view knows its base, and how history is rebased.

A write through a view changes the base and every other view of it. The base then gets a
:class:`ScatterView` node, as if it had been computed from its old value and the view's new one; the views
notice that their base's node is another and rebuild their own the next time they are used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.meta import MetaArray, view_of
from tensorplug.core.dispatch import execution, op_registry
from tensorplug.core.dispatch.execution import overlap_error, shares_elements
from tensorplug.core.dispatch.layers import gradient_off, recording
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.op_registry import Spec
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TRACKED, VIEW, bump_version, new_tensor

from ..grad_mode import enable_grad
from ..transforms.levels import run_spec
from .nodes import MultiNode, Node, OutputNode, node_extra

AS_STRIDED = op_registry.handle("as_strided")
CLONE = op_registry.handle("clone")


# The view ops that lead from a base to a view, the last one first: (steps before, op, arguments), or None. A
# chain of views shares its steps, and making one more costs the same at any depth.
Steps = tuple[Any, Op, tuple[Any, ...]]


class View:
    """What a tensor knows as a view.

    Attributes
    ----------
    base : Tensor
        The tensor, no view itself, whose memory it shows.
    before : (steps before, op, arguments) or None
        The view ops that lead from the base to what it is a view of, the last one first.
    op, values
        The op that made it, with its arguments.
    seen : Node or None
        The base's node when the view's own was made.
    recorded : bool
        Whether the view was made while recording, and alone.
    unrecorded_in : {"", "no_grad", "inference_mode"}
        The mode in which it, or a view that it shows, was made without recording.
    """

    __slots__ = ("base", "before", "op", "recorded", "seen", "unrecorded_in", "values")

    base: Any
    before: Any
    op: Op
    values: tuple[Any, ...]
    seen: Any
    recorded: bool
    unrecorded_in: str

    def steps(self) -> Steps:
        """Return the view ops that lead from the base to it: no tuple of them is kept, as views are many."""
        return (self.before, self.op, self.values)

    def replay(self, tensor: Any) -> Any:
        """Return the same view of another tensor."""
        return replay(self.steps(), tensor)


def _in_order(steps: Any) -> list[tuple[Op, tuple[Any, ...]]]:
    """Return the view ops with their kernel arguments, the first one first."""
    ordered = []
    while steps is not None:
        steps, op, values = steps
        ordered.append((op, values))
    ordered.reverse()
    return ordered


def replay(steps: Steps, tensor: Any) -> Any:
    """Apply view ops to a tensor."""
    for op, values in _in_order(steps):
        if op is AS_STRIDED and values[3] != (tensor.stride(), tensor.storage_offset()):
            raise RuntimeError(
                "as_strided(): the view was made of a tensor laid out in another way than the gradient; "
                "make it of a contiguous tensor"
            )
        shape, dtype = _result_of(op, tensor, values)
        spec = Spec((tensor, *values), shape, dtype)
        if dispatch_state.layers_active:
            tensor = run_spec(op, spec)
        else:
            tensor = execution.execute(op, spec)
    return tensor


def _result_of(op: Op, tensor: Any, values: tuple[Any, ...]) -> tuple[Any, Any]:
    runtime = tensor._key.runtime
    meta = view_of(
        op,
        MetaArray(tensor._shape, tensor._key.dtype, runtime.strides(tensor._array)),
        values,
    )
    return meta.shape, meta.dtype


def note_view(op: Op, source: Any, values: tuple[Any, ...], output: Any, recorded: bool) -> View:
    """Attach a :class:`View` to the output of a view op."""
    outer = source._view
    view = View.__new__(View)
    view.unrecorded_in = "" if recorded or not dispatch_state.grad_disabled else _mode()
    if outer is None:
        base = source
        view.before = None
        view.recorded = recorded
    else:
        base = base_of(outer)
        if op is AS_STRIDED and base._key is source._key:
            view.before = None
            values = _of_memory(values, base)
        else:
            view.before = outer.steps()
        view.recorded = recorded and outer.recorded
        if outer.unrecorded_in:
            view.unrecorded_in = outer.unrecorded_in
    view.base = base
    view.op = op
    view.values = values
    view.seen = base._node
    output._view = view
    return view


def _mode() -> str:
    """Return the name of the mode in which this thread does not record, "" if it does."""
    if recording.inference:
        return "inference_mode"
    return "" if recording.enabled else "no_grad"


def _of_memory(values: tuple[Any, ...], base: Any) -> tuple[Any, ...]:
    """Return arguments of ``as_strided`` for a view's base: it may show what the view does not."""
    return (*values[:3], (base.stride(), base.storage_offset()))


def base_of(view: View) -> Any:
    """Return the view's base, found anew if :func:`relayout` has made a view of what was the base."""
    base = view.base
    if base._view is not None:
        base = view.base = base._view.base
    return base


def refresh(tensor: Any) -> None:
    """Give a view the node that fits its base's present one."""
    view = tensor._view
    base = base_of(view)
    if view.seen is base._node:
        return
    before = tensor._node
    if view.unrecorded_in and base._node is not None:
        raise RuntimeError(_of_another_mode(tensor, _BASE_WRITTEN))
    if isinstance(before, OutputNode) and type(before.parent) is not MultiNode:
        raise RuntimeError(
            f"Output {before.number} of {before.name()} is a view and {_BASE_WRITTEN}. {_CUSTOM}"
        )
    with enable_grad():
        again = view.replay(base)
    tensor._node = again._node
    tensor._state = TRACKED if again._node is not None else VIEW
    view.seen = base._node
    if tensor._extra is not None and tensor._extra.retains_grad:
        retain(tensor, before)


def renew(tensor: Any) -> None:
    """Give a view the node that its base's leads to, whatever view it was made of."""
    tensor._view.seen = tensor  # no node
    refresh(tensor)


def retain(tensor: Any, before: Node | None) -> None:
    """Have the tensor's node fill its ``grad``, and no longer the one from before it changed."""
    if before is not None and before.extra is not None:
        kept = before.extra.retains
        if kept is not None and kept() is tensor:
            before.extra.retains = None
    if tensor._node is not None:
        node_extra(tensor._node).retains = weakref.ref(tensor)


def refuse_overlap(op: Op, tensor: Any) -> None:
    """Refuse to record a write to elements that share memory, as those of windows do."""
    if shares_elements(tensor):
        raise overlap_error(f"{op.name}_")


_CUSTOM = (
    "This view was created inside a custom Function, whose backward the view's own would override; clone() "
    "the output of the Function"
)
_SEVERAL = (
    "This view is the output of a function that returns multiple views, which do not allow it; make the "
    "view alone, or compute out of place"
)
_BASE_WRITTEN = "its base or another view of its base has been modified inplace"
_WRITTEN = "is being modified inplace"


def _of_another_mode(tensor: Any, what: str) -> str:
    """Return what is wrong with a recorded write that a view, made without recording, has to do with."""
    node = tensor._node
    mode = tensor._view.unrecorded_in
    made, now = (
        ("inference mode", "in normal mode")
        if mode == "inference_mode"
        else ("no_grad mode", "with grad mode enabled")
    )
    view = (
        "A view was" if node is None else f"Output 0 of {node.name()} is a view of a view which was"
    )
    return (
        f"{view} created in {made} and {what} {now}. It cannot be told whether the write is to be recorded: "
        f"move both the view and the write inside the {mode} block, or both outside"
    )


def refused(name: str, tensor: Any) -> RuntimeError:
    """Return the error for a recorded write to a view whose way from its base was not recorded."""
    node = tensor._node
    if tensor._view.unrecorded_in:
        return RuntimeError(f"{name}_(): {_of_another_mode(tensor, _WRITTEN)}")
    if not isinstance(node, OutputNode):
        return RuntimeError(
            f"{name}_(): a view of a view that was not recorded {_WRITTEN}: {_SEVERAL}. Or: {_CUSTOM}"
        )
    cause = _SEVERAL if type(node.parent) is MultiNode else _CUSTOM
    return RuntimeError(
        f"{name}_(): Output {node.number} of {node.name()} is a view and {_WRITTEN}. {cause}"
    )


def rebase(tensor: Any, node: Node) -> None:
    """Make `node` the maker of a view's present value, and let the base and its views know."""
    view = tensor._view
    base = base_of(view)
    base_edge = edge_of(base) if requires_grad(base) else None
    before = base._node
    base._node = ScatterView(base_edge, node, base, view.steps())
    base._state = TRACKED
    if base._extra is not None and base._extra.retains_grad:
        retain(base, before)
    refresh(tensor)


def relayout(tensor: Any, show: Callable[[Any], Any]) -> None:
    """Turn a tensor into a view of what it was, as ``unsqueeze_`` does.

    Where the tensor may have views, a new tensor takes its place as their base.
    """
    extra = tensor._extra
    shared = tensor._storage
    source = tensor
    if shared is not None and tensor._view is None:
        source = new_tensor(tensor._array, tensor._key, tensor._shape)
        source._storage = shared
        source._node = tensor._node
        source._state = tensor._state
    before = tensor._node
    view = tensor._view
    if before is not None or (view is not None and view.recorded):
        with enable_grad():  # a node from before would be one of the old layout
            result = show(source)
    else:
        result = show(source)
    tensor._array = result._array
    tensor._shape = result._shape
    if shared is None:
        tensor._writes = tensor._storage.version
        tensor._storage = None
        if result._node is not None:
            tensor._node = result._node
            tensor._state = TRACKED
    else:
        tensor._view = result._view
        tensor._node = result._node
        tensor._state = result._state
    if extra is not None and extra.retains_grad:
        retain(tensor, before)
    bump_version(tensor)


def requires_grad(tensor: Any) -> bool:
    """Return whether a tensor requires grad; a view asks its base.

    One that was made before the base required grad, or was not recorded, is a leaf of its own, as in torch.
    """
    state = tensor._state
    if state == VIEW:
        refresh(tensor)
        return bool(tensor._state == TRACKED) or requires_grad(tensor._view.base)
    return bool(state)


def edge_of(tensor: Any) -> Any:
    """Return where the gradient of a tensor that requires grad goes: its node, or the leaf itself."""
    if tensor._view is not None:
        refresh(tensor)
    node = tensor._node
    return tensor if node is None else node


class ScatterView(Node):
    """The base after a write through one of its views."""

    __slots__ = ("steps",)

    def __init__(self, base: Any, written: Node, tensor: Any, steps: Steps) -> None:
        self.begin((base, written), tensor._key, tensor._shape)
        self.steps = steps

    def name(self) -> str:
        """Return torch's name for it."""
        return "CopySlices"

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Give the written part its gradient, and the base the rest."""
        if not raw:
            return self._gradients(gradient)
        tensor = new_tensor(gradient, self.key, self.shape)
        with gradient_off():
            results = self._gradients(tensor)
        return [(None if t is None else t._array, fresh) for t, fresh in results]

    def _gradients(self, gradient: Any) -> list[tuple[Any, bool]]:
        if any([op is AS_STRIDED for op, _ in _in_order(self.steps)]):
            gradient = CLONE.call(gradient)  # strides are meant for a contiguous base
        written = replay(self.steps, gradient).clone()
        if self.edges[0] is None:
            return [(None, False), (written, True)]
        rest = gradient.clone()
        replay(self.steps, rest).zero_()
        return [(rest, True), (written, True)]
