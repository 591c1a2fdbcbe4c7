"""Forward mode: tensors carry tangents, and ops compute the tangents of their results.

A tensor's tangents are kept by level, so that nested derivatives do not mix. What a level does with an op
consists of ops again, which the levels outside of it see. A level may push many tangents at once: they are
batched, while the tensors that have them are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorplug.core.dispatch import op_registry, out_dtypes, writes
from tensorplug.core.dispatch.composite_runs import run_decomposition
from tensorplug.core.dispatch.execution import broadcast_error, overlaps
from tensorplug.core.dispatch.layers import recording
from tensorplug.core.dispatch.op_registry import Delegated, Op, Spec
from tensorplug.core.dispatch.overrides import in_formula
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.tensor.base import TensorBase, storage_of
from tensorplug.core.tensor.tensor import Tensor

from ..engine.backward import grad
from ..engine.derivatives import ARGUMENT, GRADIENT, GRADIENTS, NEEDS, OUTPUT
from ..engine.formula_contracts import check_tangent
from ..grad_mode import enable_grad
from ..graph import views
from ..graph.nodes import OpNode, OutputNode
from ..graph.recording import of_each
from ..transforms.levels import (
    ActiveLevels,
    Level,
    call_like,
    leaf_for,
    run_spec,
    state,
    tensors_in,
    without_target,
)
from ..vmap.batched_tensor import (
    BatchLevel,
    check_randomness,
    front,
    is_batched,
    ordinary,
    wrap,
)
from .tangents import FORMULAS, HOLOMORPHIC, LINEAR, rule_of

COPY = op_registry.handle("copy")
AS_STRIDED = op_registry.handle("as_strided")
VIEW = op_registry.handle("view")


class ForwardLevel(Level):
    """One forward-mode differentiation at work.

    Attributes
    ----------
    batches : tuple of BatchLevel
        The level at which all of its tangents are batched, or none.
    """

    def __init__(self, batch: BatchLevel | None = None) -> None:
        super().__init__()
        self.batches = () if batch is None else (batch,)

    def below(self, number: int) -> ActiveLevels:
        """Have ops on tangents meet what lies outside of this level, whose number is given."""
        return ActiveLevels(self.batches, state.tangents[:number])

    def before_random(self) -> None:
        """Refuse a random op where no ``randomness`` was said."""
        for batch in self.batches:
            check_randomness(batch.randomness)

    def end(self) -> None:
        """Take this level's tangents from all tensors."""
        for tensor in self.live():
            if tensor._tangents is not None:
                tensor._tangents.pop(self, None)
                if not tensor._tangents:
                    del tensor._tangents
        for batch in self.batches:
            batch.end()
        super().end()


def set_tangent(tensor: Any, level: ForwardLevel, value: Any) -> None:
    """Give a tensor its tangent at a level."""
    if level.batches and value is not None and not is_batched(value, level.batches[0]):
        batch = level.batches[0]
        value = wrap(front(value, batch).clone(), 0, batch)
    if tensor._tangents is None:
        tensor._tangents = {}
    tensor._tangents[level] = value
    level.note(tensor)


def tangent_at(tensor: Any, level: ForwardLevel) -> Any:
    """Return a tensor's tangent at a level, or None; a view asks its base."""
    mine = tensor._tangents
    known = None
    if mine is not None and level in mine:
        known = mine[level]  # None for a view that was cut off from its base's tangent
    else:
        view = tensor._view
        if view is not None:
            base = views.base_of(view)
            whole = None if base._tangents is None else base._tangents.get(level)
            if whole is not None:
                known = view.replay(whole)
                set_tangent(tensor, level, known)
    return known


def keep_tangents(source: Any, result: Any) -> None:
    """Give a tensor the tangents of another one of the same content."""
    if source._tangents:
        for level, value in source._tangents.items():
            set_tangent(result, level, value)


def _innermost(values: Any) -> int | None:
    """Return the number of the innermost level at which one of the tensors has a tangent."""
    tensors = list(tensors_in(values))
    for number in range(len(state.tangents) - 1, -1, -1):
        level = state.tangents[number]
        with level.below(number):
            if any(tangent_at(tensor, level) is not None for tensor in tensors):
                return number
    return None


# --- calls ------------------------------------------------------------------------------------


def call_dual(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op with tensors that have tangents among its arguments."""
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments has a tangent"
        )
    if op.kind != "composite":
        return run_spec(op, op.function(*args, **kwargs))
    if op.inplace_of is not None:
        return _inplace(op.inplace_of, op, args, kwargs)
    whole = rule_of(op) is not None or (op.derivative is not None and not op.view)
    if not whole:
        return run_decomposition(op, args, kwargs)
    values = op.arguments(args, kwargs)
    if type(values) is Delegated:
        return values.result
    number = _innermost(values)
    if number is None:
        return op.decompose(values)
    args, kwargs = op.unbind(values)
    with ActiveLevels((), state.tangents[:number]):
        result = op.call(*args, **kwargs)
    _share_arguments(values, result)
    _differentiate(op, values, result, number, None)
    return result


def spec_dual(op: Op, spec: Spec) -> Any:
    """Call a primitive with tensors that have tangents among its canonical arguments."""
    number = _innermost(spec.values)
    if number is None:
        with ActiveLevels((), ()):
            return run_spec(op, spec)
    with ActiveLevels((), state.tangents[:number]):
        result = run_spec(op, spec)
    _differentiate(op, spec.values, result, number, spec)
    return result


def _differentiate(
    op: Op, values: tuple[Any, ...], result: Any, number: int, spec: Spec | None
) -> None:
    """Give the results of a call their tangents at one level."""
    level = state.tangents[number]
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if not any(isinstance(out, Tensor) and out._key.is_differentiable for out in outputs):
        return
    with level.below(number):
        given = _tangents_of(values, level)
        with in_formula():
            found = _rule(op, values, given, outputs, spec)
        others = [storage_of(ordinary(tensor)) for tensor in tensors_in(given)]
        for position, (output, value) in enumerate(zip(outputs, found, strict=True)):
            if value is None or not output._key.is_differentiable:
                continue
            if value._key is not output._key:
                value = value.to(output._key.device, output._key.dtype)
            if value._shape != output._shape:
                value = value.expand(output._shape)
            if output._view is None:
                # A write to the output is one to its tangent, and must reach no other.
                memory = ordinary(value)
                if overlaps(memory) or any(storage_of(memory) is other for other in others):
                    value = value.clone()
            set_tangent(output, level, value)
            _share(output, position)


def _tangents_of(values: Any, level: ForwardLevel) -> list[Any]:
    """Return, for each argument, its tangent, None, or a list of those."""
    return [
        tangent_at(value, level)
        if isinstance(value, Tensor)
        else _tangents_of(value, level)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value)
        else None
        for value in values
    ]


def _any(tangent: Any) -> bool:
    if isinstance(tangent, list):
        return any(item is not None for item in tangent)
    return tangent is not None


def _share(output: Any, position: int) -> None:
    """Let the output that its node saved have the output's tangents, too."""
    for kept, origin, number in _saved_with(output):
        if origin == OUTPUT and number == position and kept._array is output._array:
            kept._tangents = output._tangents


def _share_arguments(values: tuple[Any, ...], result: Any) -> None:
    """Let the arguments that a node saved have the tangents that these, of the same content, have.

    The rule ran a second time below the level: views that it makes there know nothing of tangents.
    """
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    recorded = [output for output in outputs if output._node is not None]
    for kept, origin, number in _saved_with(recorded[0]) if recorded else ():
        if origin == ARGUMENT and isinstance(values[number], Tensor) and values[number]._tangents:
            kept._tangents = values[number]._tangents


def _saved_with(output: Any) -> Iterator[tuple[Any, int, int]]:
    """Yield the tensors that an output's node saved, and what they are to the op."""
    node = output._node
    if isinstance(node, OutputNode):
        node = node.parent
    if isinstance(node, OpNode) and node.saved is not None:
        for kept, (_, origin, number) in zip(node.saved, node.plan.saves, strict=True):
            if isinstance(kept, Tensor):
                yield kept, origin, number


# --- rules ------------------------------------------------------------------------------------


def _rule(
    op: Op, values: tuple[Any, ...], given: list[Any], outputs: tuple[Any, ...], spec: Spec | None
) -> tuple[Any, ...]:
    rule = rule_of(op)
    if rule is not None and rule.kind == FORMULAS:
        return _by_formulas(op, rule, values, given, outputs)
    if rule is not None and rule.kind == LINEAR:
        return _by_itself(op, rule, values, given, outputs, spec)
    if op.derivative is None:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it because it has not been "
            "implemented yet."
        )
    if op.pointwise:
        if not any(t._key.dtype.is_complex for t in (*tensors_in(values), *outputs)):
            return _by_gradient(op, values, given, outputs, False)
        if rule is not None and rule.kind == HOLOMORPHIC:
            return _by_gradient(op, values, given, outputs, True)
    return _by_differentiation(op, values, given, outputs)


def _value_of(origin: int, position: int, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> Any:
    """Return what a formula asks for, save tangents and gradients."""
    if origin == ARGUMENT:
        return values[position]
    if origin == OUTPUT:
        return outputs[position]
    return of_each(values[position], origin)


def _by_formulas(
    op: Op, rule: Any, values: tuple[Any, ...], given: list[Any], outputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    total: list[Any] = [None] * len(outputs)
    for position, function, sources, argument in rule.formulas:
        if not _any(given[position]):
            continue
        arguments = [
            given[position] if origin == GRADIENT else _value_of(origin, index, values, outputs)
            for origin, index in sources
        ]
        part = function(*arguments)
        parts = part if isinstance(part, tuple) else (part,)
        for number, value in enumerate(parts):
            if value is not None:
                output = outputs[number]
                check_tangent(rule.source.owner, op, argument, value, given[position], output)
                known = total[number]
                total[number] = value if known is None else known + value
    return tuple(total)


def _by_itself(
    op: Op,
    rule: Any,
    values: tuple[Any, ...],
    given: list[Any],
    outputs: tuple[Any, ...],
    spec: Spec | None,
) -> tuple[Any, ...]:
    """Apply an op that is linear in some arguments to their tangents, zeros where one has none."""
    if not any(_any(given[position]) for position in rule.positions):
        return (None,) * len(outputs)
    replaced = list(values)
    for position in rule.positions:
        replaced[position] = _or_zeros(given[position], values[position])
    if spec is None:
        args, kwargs = op.unbind(replaced)
        result = op.call(*args, **kwargs)
    elif op is AS_STRIDED:
        own, shown = values[0], replaced[0]
        if (own.stride(), own.storage_offset()) != (shown.stride(), shown.storage_offset()):
            return _by_differentiation(op, values, given, outputs)
        result = call_like(op, tuple(replaced), spec, outputs=spec.outputs)
    elif op is VIEW:
        result = replaced[0].reshape(values[1])  # the tangent may lie in memory in another way
    else:
        result = call_like(op, tuple(replaced), spec, outputs=spec.outputs)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _or_zeros(tangent: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        items = tangent if isinstance(tangent, list) else [None] * len(value)
        return [_or_zeros(t, v) for t, v in zip(items, value, strict=True)]
    if not isinstance(value, TensorBase):
        return 0 if isinstance(value, (int, float, complex)) else value
    return zeros_like(value) if tangent is None else tangent  # type: ignore[arg-type]


def _by_gradient(
    op: Op, values: tuple[Any, ...], given: list[Any], outputs: tuple[Any, ...], conjugate: bool
) -> tuple[Any, ...]:
    """Use the reverse formulas: the Jacobian of a pointwise op is diagonal."""
    total = None
    sources = op.derivative.sources
    for formula in op.derivative.formulas:
        tangent = given[formula.position]
        if tangent is None:
            continue
        if conjugate:
            tangent = tangent._conj()
        if len(tangent._shape) < len(outputs[0]._shape) or tangent._shape != outputs[0]._shape:
            tangent = tangent.expand(outputs[0]._shape)
        arguments = [
            tangent
            if sources[slot][0] == GRADIENT
            else True
            if sources[slot][0] == NEEDS
            else _value_of(sources[slot][0], sources[slot][1], values, outputs)
            for slot in formula.slots
        ]
        part = formula.function(*arguments)
        if conjugate:
            part = part._conj()
        total = part if total is None else total + part
    return (total,)


def _by_differentiation(
    op: Op, values: tuple[Any, ...], given: list[Any], outputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Differentiate the reverse formulas with respect to the gradient: the adjoint's adjoint."""
    create_graph = recording.enabled
    sources = op.derivative.sources
    with enable_grad():
        probes = [
            leaf_for(zeros_like(out)) if out._key.is_differentiable else zeros_like(out).detach()
            for out in outputs
        ]
        pulled: list[Any] = []
        pushed: list[Any] = []
        for formula in op.derivative.formulas:
            indices = formula.positions
            tangent: Any = (
                given[indices[0]] if len(indices) == 1 else [given[index] for index in indices]
            )
            if not _any(tangent):
                continue
            arguments = []
            for slot in formula.slots:
                origin, position = sources[slot]
                if origin == GRADIENT:
                    arguments.append(probes[position])
                elif origin == GRADIENTS:
                    arguments.append(list(probes))
                elif origin == NEEDS:
                    arguments.append(_any(given[position]))
                else:
                    arguments.append(_value_of(origin, position, values, outputs))
            gradient = formula.function(*arguments)
            pairs = (
                zip(gradient, tangent, strict=True)
                if isinstance(gradient, list)
                else ((gradient, tangent),)
            )
            for g, t in pairs:
                if g is None or t is None or not g.requires_grad:
                    continue
                if t._shape != g._shape:
                    t = t.expand(g._shape)
                pulled.append(g)
                pushed.append(t)
        wanted = [probe for probe in probes if probe.requires_grad]
        if not pulled:
            return (None,) * len(outputs)
        results = grad(pulled, wanted, pushed, create_graph=create_graph, allow_unused=True)
    if create_graph and not any(ordinary(t).requires_grad for t in tensors_in((values, given))):
        # What the formula differentiates in turn is a point of its own, which nobody sees.
        results = tuple([None if value is None else _released(value) for value in results])
    found = iter(results)
    return tuple([next(found) if probe.requires_grad else None for probe in probes])


def _released(value: Any) -> Any:
    """Return a tangent, and the tangents that it has, without the graph that made them."""
    known = ordinary(value)._tangents
    if not known and not ordinary(value).requires_grad:
        return value
    cut = value.detach()
    for level, tangent in (known or {}).items():
        set_tangent(ordinary(cut), level, _released(tangent))
    return cut


# --- writing in place -------------------------------------------------------------------------


def _inplace(source: Op, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write into a tensor and its tangent: by way of ``copy_``, of what the op itself returns."""
    target = args[0]
    if source is COPY:
        return _copy(target, args[1] if len(args) > 1 else kwargs["src"])
    if source.layout:
        return _relayout(source, op.name, args, kwargs)
    if source.inplace_body is not None:
        written = source.inplace_body(*args, **kwargs)
        if written is not NotImplemented:
            return written
    result = source.call(*without_target(args, kwargs), **kwargs)
    if result._shape != target._shape:
        raise broadcast_error(op.name, target._shape, result._shape)
    out_dtypes.check_out(op.name, target, result._key.dtype, result._key)
    writes.inplace(COPY, "copy_", target, (result,), {})
    return target


def _copy(target: Any, source: Any) -> Any:
    number = _innermost((target, source))
    if number is None:
        with ActiveLevels((), ()):
            writes.inplace(COPY, "copy_", target, (source,), {})
        return target
    level = state.tangents[number]
    with level.below(number):
        pushed = tangent_at(source, level) if isinstance(source, Tensor) else None
        own = tangent_at(target, level)
        writes.inplace(COPY, "copy_", target, (source,), {})
        if not target._key.is_differentiable:
            return target
        if own is None:
            base = target if target._view is None else views.base_of(target._view)
            set_tangent(base, level, zeros_like(base.detach()))
            own = tangent_at(target, level)
        if pushed is None:
            own.zero_()
        else:
            writes.inplace(COPY, "copy_", own, (pushed,), {})
        _share(target, 0)
    return target


def _relayout(op: Op, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target = args[0]
    for number, level in enumerate(state.tangents):
        with level.below(number):
            known = tangent_at(target, level)
            if known is not None:
                set_tangent(target, level, op.call(known, *args[1:], **kwargs))
    with ActiveLevels((), ()):
        return writes.inplace(op, name, target, args[1:], kwargs)


dispatch_state.call_dual = call_dual
dispatch_state.spec_dual = spec_dual
