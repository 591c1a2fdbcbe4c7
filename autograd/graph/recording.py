"""Nodes of recorded calls: what they save, and where their gradients go."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.call_cache import CachedCall
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.dispatch.torch_dispatch import alias
from tensorplug.core.dispatch.view_plans import ViewPlan, ViewPlans
from tensorplug.core.errors import DerivativeNotFoundError
from tensorplug.core.plugins import plugin_label
from tensorplug.core.tensor.base import (
    TRACKED,
    Storage,
    TensorBase,
    extra_of,
    new_tensor,
    version_of,
)

from ..engine.derivatives import (
    ARGUMENT,
    DEVICE,
    DTYPE,
    NDIM,
    OUTPUT,
    SHAPE,
    CompiledDerivative,
    Plan,
)
from . import decomposition, saved_tensors
from .decomposition import DecompositionNode
from .nodes import MultiNode, OpNode, OutputNode, new_node
from .views import edge_of, requires_grad


class Recording:
    """How a cached call is recorded, for one choice of arguments that require grad.

    Attributes
    ----------
    rule, plan : Rule, Plan
        The derivative, with a plan of its own that keeps programs; a call of an op that has another
        derivative by now needs another Recording.
    watched : Plan
        The plan for nodes whose saved tensors are packed: unpacked, they may be of other shapes.
    edges : tuple of int
        The positions, among the call's arguments, of the tensors that gradients go to.
    saves : tuple of (position, value)
        What is saved: the tensor at a position among the call's arguments, an output (its number is
        the value), or a plain value.
    sizes : tuple or None
        As a node has them.
    """

    __slots__ = ("edges", "plan", "rule", "saves", "sizes", "watched")

    def __init__(
        self, op: Op, cached: CachedCall, mask: int, args: tuple[Any, ...], shape: tuple[int, ...]
    ) -> None:
        self.rule: CompiledDerivative = op.derivative or missing(op)
        self.watched = self.rule.plan(mask)
        self.plan = plan = Plan(self.rule, mask)
        plan.programs = [None] * len(plan.formulas)
        where = dict(zip(cached.slots, cached.arg_indices, strict=True))
        # Of several arguments of one formula, some may require no gradient.
        self.edges = tuple(
            [
                where[index] if mask >> index & 1 else NOWHERE
                for formula in plan.formulas
                for index in formula.positions
            ]
        )
        values = tuple(cached.fill(args))
        saves: list[tuple[int, Any]] = []
        for _, origin, position in plan.saves:
            if origin == OUTPUT:
                saves.append((RESULT, position))
            elif origin == ARGUMENT and position in where:
                saves.append((where[position], None))
            else:
                saves.append((PLAIN, save(origin, position, values, ())[0]))
        self.saves = tuple(saves)
        self.sizes = None
        if op.pointwise:
            sizes = tuple([args[edge]._shape for edge in self.edges])
            self.sizes = sizes if any([size != shape for size in sizes]) else None


RESULT, PLAIN = -1, -2
NOWHERE = -1


def fill_node(
    recording: Recording, node: OpNode, args: tuple[Any, ...], first: Any, outputs: Any
) -> None:
    """Set the slots of a new node; `outputs` are all of them where there are several."""
    saved: list[Any] = []
    versions: list[Any] = []
    for position, value in recording.saves:
        if position == PLAIN:
            saved.append(value)
            versions.append(None)
            continue
        if position >= 0:
            tensor = args[position]
            if tensor._extra is not None and tensor._extra.inference:
                raise inference_saved()
        else:
            tensor = first if outputs is None else outputs[value]
            if tensor._key.is_differentiable:  # else no node is its maker: no cycle begins there
                tensor = shared(tensor)
        storage = tensor._storage
        saved.append(tensor)
        versions.append(tensor._writes if storage is None else storage.version)
    edges: list[Any] = []
    for edge in recording.edges:
        if edge == NOWHERE:
            edges.append(None)
            continue
        tensor = args[edge]
        if tensor._view is not None:
            edges.append(edge_of(tensor))
        else:
            edges.append(tensor if tensor._node is None else tensor._node)
    node.edges = tuple(edges)  # as OpNode.fill does: as Python, most calls come here
    node.key = first._key
    node.shape = first._shape
    node.pending = 0
    node.extra = None
    node.plan = recording.plan
    node.saved = tuple(saved)
    node.versions = tuple(versions)
    node.sizes = recording.sizes
    if dispatch_state.gradient.watched:
        node.plan = recording.watched
        saved_tensors.watch(node)


def missing(op: Op) -> Any:
    """Raise for an op that is neither differentiable nor declared not to be."""
    raise DerivativeNotFoundError(
        f"op {op.name!r} has no derivative, but one of its inputs requires grad. The plugin that registers "
        f"the op, {plugin_label(op.owner)}, has to supply derivative({op.name!r}, ...) or "
        f"not_differentiable({op.name!r}); call detach() on the inputs, or use `with tp.no_grad():`, if "
        "no gradient is wanted"
    )


def any_requires(values: Any) -> bool:
    """Return whether any tensor among values and lists of values requires grad."""
    for value in values:
        if isinstance(value, TensorBase):
            if value._state and requires_grad(value):
                return True
        elif isinstance(value, (list, tuple)) and any_requires(value):
            return True
    return False


def save(
    origin: int, position: int, values: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Return what a node keeps for one source, with the versions of the tensors in it."""
    if origin == OUTPUT:
        output = outputs[position]
        return shared(output), version_of(output)
    value = values[position]
    if origin == ARGUMENT:
        if isinstance(value, TensorBase):
            tensor = value
            if tensor._extra is not None and tensor._extra.inference:
                raise inference_saved()
            return tensor, version_of(tensor)
        if isinstance(value, (list, tuple)) and any([isinstance(v, TensorBase) for v in value]):
            return value, [version_of(v) if isinstance(v, TensorBase) else None for v in value]
        return value, None
    return of_each(value, origin), None


def shared(output: Any) -> Any:
    """Return another tensor over a new result's memory, cut off from the graph: no cycle begins there."""
    if output._key.intercepts:
        return alias(output)
    storage = output._storage
    if storage is None:
        storage = output._storage = Storage.__new__(Storage)  # no call of an __init__
        storage.version = output._writes
        storage.mirror = None
    kept: Any = new_tensor(output._array, output._key, output._shape)
    kept._storage = storage
    return kept


def save_all(
    plan: Plan,
    values: tuple[Any, ...],
    outputs: tuple[Any, ...],
    versions_before: dict[int, int] | None = None,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return all that a plan saves, and the versions of the tensors in it."""
    saved = []
    versions = []
    for _, origin, position in plan.saves:
        kept, version = save(origin, position, values, outputs)
        if versions_before is not None and origin == ARGUMENT and id(kept) in versions_before:
            version = versions_before[id(kept)]
        saved.append(kept)
        versions.append(version)
    return tuple(saved), tuple(versions)


def of_each(value: Any, origin: int) -> Any:
    """Return the shape, dtype, device or number of dimensions of a tensor, or of each in a list."""
    if isinstance(value, (list, tuple)):
        return [of_each(item, origin) for item in value]
    if not isinstance(value, TensorBase):
        return None
    if origin == SHAPE:
        return value._shape
    if origin == DTYPE:
        return value._key.dtype
    if origin == DEVICE:
        return value._key.device
    assert origin == NDIM
    return len(value._shape)


def build(
    op: Op,
    values: tuple[Any, ...],
    outputs: tuple[Any, ...],
    versions_before: dict[int, int] | None = None,
) -> OpNode | None:
    """Return the node of a call, or None if no argument requires grad."""
    tracked = []
    for position, value in enumerate(values):
        if isinstance(value, TensorBase):
            tensor = value
            if tensor._state and requires_grad(tensor):
                tracked.append(position)
        elif isinstance(value, (list, tuple)) and any_requires(value):
            tracked.append(position)
    if not tracked:
        return None
    rule: CompiledDerivative = op.derivative or decomposition.rule_of(op) or missing(op)
    mask = 0
    for position in tracked:
        mask |= 1 << position
    plan = rule.plans.get(mask) or rule.plan(mask)
    if not plan.formulas:
        return None
    connected: tuple[bool, ...] | None = None
    if op.derivative is None:
        connected = decomposition.connected_results(op, values, len(outputs))
        if True not in connected:
            return None
    edges: list[Any] = []
    sizes: list[Any] | None = [] if op.pointwise else None
    for formula in plan.formulas:
        value = values[formula.position]
        if len(formula.positions) > 1:
            edges.extend(
                [
                    edge_of(values[index]) if mask >> index & 1 else None
                    for index in formula.positions
                ]
            )
        elif isinstance(value, TensorBase):
            tensor = value
            edges.append(edge_of(tensor))
            if sizes is not None:
                sizes.append(tensor._shape)
        else:
            edges.extend(
                [
                    edge_of(item)
                    if isinstance(item, TensorBase) and item._state and requires_grad(item)
                    else None
                    for item in value
                ]
            )
    kept_all, versions_all = save_all(plan, values, outputs, versions_before)
    first = outputs[0]
    if sizes is not None and all([size == first._shape for size in sizes]):
        sizes = None
    node: OpNode
    if len(outputs) > 1 or op.derivative is None:
        several: MultiNode = MultiNode() if connected is None else DecompositionNode(connected)
        several.outputs = tuple([(output._key, output._shape) for output in outputs])
        node = several
    else:
        node = OpNode()
    node.fill(
        first, tuple(edges), plan, kept_all, versions_all, None if sizes is None else tuple(sizes)
    )
    if dispatch_state.gradient.watched:
        saved_tensors.watch(node)
    return node


class PlainRecording:
    """How a call is recorded that saves shapes and plain values alone, the same each time."""

    __slots__ = ("plan", "rule", "saved", "versions")

    rule: CompiledDerivative
    plan: Plan
    saved: tuple[Any, ...]
    versions: tuple[Any, ...]


def build_view(
    op: Op, source: Any, values: tuple[Any, ...], output: Any, planned: ViewPlan | None
) -> OpNode | None:
    """Return the node of a view, whose only tensor is its source; None if it has no derivative."""
    rule: CompiledDerivative = op.derivative or missing(op)
    how: PlainRecording | None = None if planned is None else planned.recording
    if how is None or how.rule is not rule:
        how = _record_view(rule, source, values, output)
        if planned is not None and how.versions == _NO_VERSIONS[len(how.versions)]:
            planned.recording = how
    if not how.plan.formulas:
        return None
    edge = source._node if source._view is None else edge_of(source)
    node = new_node()
    node.fill(output, (source if edge is None else edge,), how.plan, how.saved, how.versions, None)
    if dispatch_state.gradient.watched:
        saved_tensors.watch(node)
    return node


def build_views(source: Any, outputs: Any, plans: ViewPlans) -> None:
    """Make one node the maker of several views."""
    op: Any = plans.op
    rule: CompiledDerivative = op.derivative
    how: PlainRecording | None = plans.recording
    if how is None or how.rule is not rule:
        how = _record_view(rule, source, plans.values, tuple(outputs))
        if how.versions == _NO_VERSIONS[len(how.versions)]:
            plans.recording = how
    node = MultiNode()
    node.fill(outputs[0], (edge_of(source),), how.plan, how.saved, how.versions, None)
    attach_several(node, outputs)
    if dispatch_state.gradient.watched:
        saved_tensors.watch(node)


def build_listed(op: Op, cached: CachedCall, tensors: Any, output: Any) -> None:
    """Make the node of a call of a list of tensors the maker of its output."""
    rule: CompiledDerivative = op.derivative or missing(op)
    how = cached.recordings.get(1)
    if how is None or how.rule is not rule:
        node = build(op, (tensors, *cached.template[1:]), (output,))
        if node is not None:
            attach(node, (output,))
            # What hooks packed has no version either, but is this call's alone.
            plain = all([version is None for version in node.versions])
            if plain and not dispatch_state.gradient.watched and len(node.edges) == len(tensors):
                how = cached.recordings[1] = PlainRecording.__new__(PlainRecording)
                how.rule, how.plan = rule, node.plan
                how.saved, how.versions = node.saved or (), node.versions
        return
    edges: list[Any] = []
    for item in tensors:
        tensor = item
        if not tensor._state or not (tensor._state == TRACKED or requires_grad(tensor)):
            edges.append(None)
        elif tensor._view is not None:
            edges.append(edge_of(tensor))
        else:
            edges.append(tensor if tensor._node is None else tensor._node)
    node = new_node()
    node.fill(output, tuple(edges), how.plan, how.saved, how.versions, None)
    output._node = node
    output._state = TRACKED
    if dispatch_state.gradient.watched:
        saved_tensors.watch(node)


#: The versions of so many values that are no tensors.
_NO_VERSIONS: tuple[tuple[None, ...], ...] = tuple([(None,) * count for count in range(16)])


def _record_view(
    rule: CompiledDerivative, source: Any, values: tuple[Any, ...], outputs: Any
) -> PlainRecording:
    plan = rule.plans.get(1)
    if plan is None:
        plan = rule.plan(1)
    saved = []
    versions: Any = _NO_VERSIONS[len(plan.saves)]
    for _, origin, position in plan.saves:
        if origin == SHAPE and not position:
            saved.append(source._shape)
        elif origin == ARGUMENT and position:
            saved.append(values[position - 1])
        else:
            kept, versions = save_all(
                plan, (source, *values), outputs if type(outputs) is tuple else (outputs,)
            )
            saved = list(kept)
            break
    how: PlainRecording = PlainRecording.__new__(PlainRecording)  # views are many: no __init__
    how.rule = rule
    how.plan = plan
    how.saved = tuple(saved)
    how.versions = versions
    return how


def attach(node: OpNode, outputs: tuple[Any, ...]) -> None:
    """Make `node` the maker of its differentiable outputs."""
    if isinstance(node, MultiNode):
        known = isinstance(node, DecompositionNode)
        attach_several(node, outputs, node.connected if known else node.plan.rule.connected)
        return
    for output in outputs:
        if output._key.is_differentiable:
            output._node = node
            output._state = TRACKED
            if output._view is not None:
                output._view.unrecorded_in = ""  # its op's body alone was not recorded


def attach_several(
    node: MultiNode, outputs: Any, connected: tuple[bool, ...] | None = None
) -> None:
    """Make `node` the maker of several outputs, of all or those said, by a node for each."""
    made: list[Any] = []
    for index, output in enumerate(outputs):
        made.append((output._key, output._shape))
        if not output._key.is_differentiable or (connected is not None and not connected[index]):
            continue
        front: OutputNode = OutputNode.__new__(OutputNode)
        front.edges = (node,)
        front.key = output._key
        front.shape = output._shape
        front.pending = 0
        front.extra = None
        front.parent = node
        front.number = index
        output._node = front
        output._state = TRACKED
        if output._view is not None:
            output._view.unrecorded_in = ""
        if index:
            extra_of(output).output_nr = index
    node.outputs = tuple(made)


def inference_saved() -> RuntimeError:
    """Return the error for an inference tensor that a node would have to save."""
    return RuntimeError(
        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a "
        "normal tensor and use it in autograd."
    )


def mark_inference(tensor: Any) -> None:
    """Make a tensor an inference tensor."""
    extra_of(tensor).inference = True
