"""The derivative of a composite that has none of its own, but ran as one kernel: its decomposition's.

The forward pass keeps the arguments. Backward runs the decomposition on them, recording, and differentiates
that; so whatever kernel a plugin brings for a composite serves training at once. A plain pass does both by a
program, from the third one on of the same keys, shapes and plain values. Results that the decomposition cuts
off from the graph are cut off here too.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.device import META
from tensorplug.core.device.meta import empty_meta
from tensorplug.core.dispatch import keys
from tensorplug.core.dispatch.call_keys import exact_key
from tensorplug.core.dispatch.layers import isolated
from tensorplug.core.dispatch.op import Op
from tensorplug.core.dispatch.overrides import in_formula
from tensorplug.core.dispatch.programs import Program
from tensorplug.core.dispatch.recorded_bodies import TENSOR, replaced, trace_gradients
from tensorplug.core.tensor.base import TRACKED, TensorBase, new_tensor

from ..engine.backward import grad
from ..engine.derivatives import ARGUMENT, CompiledDerivative, Derivative, Formula
from ..grad_mode import enable_grad, is_grad_enabled
from ..transforms.levels import ActiveLevels, state
from .nodes import FREED, Identity, MultiNode, SavedByHook
from .saved_tensors import hooks_set_aside
from .views import requires_grad

_DERIVATIVES: dict[Op, CompiledDerivative] = {}


def rule_of(op: Op) -> CompiledDerivative | None:
    """Return the rule by which a composite is recorded as a whole: it saves all arguments."""
    if op.kind != "composite" or op.writes:
        return None
    rule = _DERIVATIVES.get(op)
    if rule is None:
        rule = _DERIVATIVES[op] = CompiledDerivative(op, Derivative(op.name, {}, 0))
        rule.sources = [(ARGUMENT, position) for position in range(op.arity)]
        every = tuple(range(op.arity))
        rule.formulas = tuple(
            [Formula(name, number, _jointly, every) for number, name in enumerate(op.parameters)]
        )
    return rule


def _jointly(*arguments: Any) -> Any:
    raise NotImplementedError("DecompositionNode computes all gradients at once")


def connected_results(op: Op, values: tuple[Any, ...], count: int) -> tuple[bool, ...]:
    """Return which of a call's `count` results require grad in its decomposition.

    Where that cannot be told from shapes, all do.
    """
    tensors: list[Any] = []

    def collected(tensor: Any) -> Any:
        tensors.append(tensor)
        return TENSOR

    every = (True,) * count
    template = replaced(list(values), collected)
    if not op.pure or any([tensor._key.intercepts for tensor in tensors]):
        return every
    plain = tuple([tuple(value) if type(value) is list else value for value in template])
    tracked = tuple([tensor._state != 0 and requires_grad(tensor) for tensor in tensors])
    kind = (op, tracked, tuple([tensor._key for tensor in tensors]), plain, exact_key(plain))
    try:
        if kind in _connected:
            return every
    except TypeError:  # a plain value that cannot be a key
        return every
    # Nothing is cut off because a call of other shapes had it so.
    call = (kind, tuple([tensor._shape for tensor in tensors]))
    known = _connected.get(call)
    if known is None:
        try:
            known = _connected_in_decomposition(op, values, tracked)
        except Exception:  # it needs values, or what is wrong shows when it runs
            known = every
        if len(_connected) >= _KEPT:
            _connected.clear()
        _connected[kind if known == every else call] = known
    return known


def _connected_in_decomposition(
    op: Op, values: tuple[Any, ...], tracked: tuple[bool, ...]
) -> tuple[bool, ...]:
    wanted = iter(tracked)

    def meta(tensor: Any) -> Any:
        made = empty_meta(tensor._shape, tensor._key.dtype)
        if next(wanted) and made._key.is_differentiable:
            made._state = TRACKED
        return made

    arguments = replaced(tuple(values), meta)
    with isolated(), hooks_set_aside(), enable_grad():
        results = op.decompose(arguments)
    results = results if isinstance(results, tuple) else (results,)
    return tuple([result.requires_grad for result in results])


class DecompositionNode(MultiNode):
    """A composite that ran as one kernel, differentiated through its decomposition."""

    __slots__ = ("connected",)

    def __init__(self, connected: tuple[bool, ...]) -> None:
        self.connected = connected

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Run the decomposition on the saved arguments and differentiate it."""
        if self.saved is None:
            raise RuntimeError(FREED)
        plan = self.plan
        updates = plan.rule.op.updates
        values = [
            self._before_update(index) if index in updates else self.unpack(index)
            for index in range(len(plan.saves))
        ]
        if raw and (found := _replayed(self, values, gradient)) is not None:
            return found
        targets: list[Any] = []
        for formula in plan.formulas:
            value = values[formula.position]
            if isinstance(value, TensorBase):
                values[formula.position] = self._target(value, raw, targets)
            else:
                values[formula.position] = [self._target(item, raw, targets) for item in value]
        # As the pass is: with layers, gradients are tensors in any case.
        recorded = is_grad_enabled()
        # What a node saved lies behind all batches, so they are not met here.
        with enable_grad(), ActiveLevels((), state.tangents), in_formula():
            results = plan.rule.op.decompose(tuple(values))
        outputs: list[Any] = []
        gradients: list[Any] = []
        for number, output in enumerate(results if isinstance(results, tuple) else (results,)):
            given = gradient.get(number)
            if given is not None and output.requires_grad:
                key, shape = self.outputs[number]
                outputs.append(output)
                gradients.append(new_tensor(given, key, shape) if raw else given)
        wanted = [target for target in targets if target is not None]
        if not outputs or not wanted:
            return [(None, False)] * len(targets)
        found = iter(grad(outputs, wanted, gradients, create_graph=recorded, allow_unused=True))
        results_of_edges: list[tuple[Any, bool]] = []
        for target in targets:
            value = None if target is None else next(found)
            results_of_edges.append((value._array if raw and value is not None else value, False))
        return results_of_edges

    def _before_update(self, index: int) -> Any:
        """Return a copy of what the forward pass updated and the decomposition will again."""
        assert self.saved is not None
        value = self.saved[index]
        value = value.unpack() if isinstance(value, SavedByHook) else value
        return None if value is None else value.detach().clone()

    def _target(self, tensor: Any, raw: bool, targets: list[Any]) -> Any:
        """Return what replaces a saved tensor whose gradient is asked for."""
        edge = self.edges[len(targets)]
        if edge is None:
            targets.append(None)
            return tensor
        target: Any = new_tensor(tensor._array, tensor._key, tensor._shape)
        target._state = TRACKED
        if not raw:
            target._node = Identity(edge, tensor._key, tensor._shape)
        targets.append(target)
        return target


class _Gradients:
    """The program of the gradients of calls that look the same; None while there is none."""

    __slots__ = ("program", "seen", "told")

    def __init__(self) -> None:
        self.program: Program | None = None
        self.seen = 0
        self.told: Any = None


_KEPT = 256
_SEEN = 2  # passes before one is traced
_NEVER = 1 << 30
_gradients: dict[Any, _Gradients] = {}
_connected: dict[Any, tuple[bool, ...]] = {}
keys.on_reset(_gradients.clear)
keys.on_reset(_connected.clear)


def _replayed(node: DecompositionNode, values: list[Any], gradient: Any) -> Any:
    """Return what ``apply`` does, by a program; None where there is none."""
    op = node.plan.rule.op
    if op.updates or not op.pure or node.key.device is META:
        return None
    tensors: list[Any] = []
    parts: list[Any] = []

    def collected(value: Any) -> Any:
        tensors.append(value)
        parts.append((value._key, value._shape))
        return TENSOR

    template = replaced(values, collected)
    given = tuple([n for n in range(len(node.outputs)) if gradient.get(n) is not None])
    edges = tuple([edge is None for edge in node.edges])
    positions = tuple([formula.position for formula in node.plan.formulas])
    flat = [tuple(value) if type(value) is list else value for value in template]
    plain = tuple([(type(value), value, exact_key(value)) for value in flat])
    key = (op, tuple(parts), given, positions, edges, plain)
    try:
        known = _gradients.get(key)
    except TypeError:  # a plain value that cannot be a key
        return None
    if known is None:
        if len(_gradients) >= _KEPT:
            _gradients.clear()
        known = _gradients[key] = _Gradients()
    if known.program is None:
        known.seen += 1
        if known.seen <= _SEEN:
            return None
        try:
            program, told = _traced(node, template, tensors, given)
        except Exception:
            known.seen = -_NEVER
            return None
        if told != known.told:
            known.seen = _SEEN if known.told is None else -_NEVER
            known.told = told
            return None
        known.program = program
    program = known.program
    arrays = [tensor._array for tensor in tensors]
    if program.reads_layout and not all(
        [tensor._key.runtime.is_contiguous(tensor._array) for tensor in tensors]
    ):
        return None
    arrays += [gradient[number] for number in given]
    fresh: Any = program.fresh
    try:
        found = iter(zip(program.run(arrays), fresh, strict=True))
    except Exception:  # the decomposition knows what to say
        return None
    return [(None, False) if edge is None else next(found) for edge in node.edges]


def _traced(
    node: DecompositionNode, template: list[Any], tensors: list[Any], given: tuple[int, ...]
) -> tuple[Program, Any]:
    """Trace the gradients of a node's call; those of the arguments that have an edge are wanted."""
    device = node.key.device
    if any([keys.dispatch_key(device, tensor._key.dtype) is not tensor._key for tensor in tensors]):
        raise ValueError("tensors on several devices, or with kernels of their own")
    inputs = [empty_meta(tensor._shape, tensor._key.dtype) for tensor in tensors]
    places = iter(inputs)
    values = replaced(template, lambda _: next(places))
    edges = iter(node.edges)
    wanted: list[Any] = []
    for formula in node.plan.formulas:
        value = values[formula.position]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if next(edges) is not None:
                item._state = TRACKED
                wanted.append(item)

    def differentiate(outputs: list[Any], gradients: list[Any]) -> Any:
        return grad(outputs, wanted, gradients, create_graph=True, allow_unused=True)

    op = node.plan.rule.op
    with enable_grad():
        return trace_gradients(
            lambda: op.decompose(tuple(values)), inputs, device, differentiate, given
        )
