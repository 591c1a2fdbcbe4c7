"""How calls of ops on batched tensors find their rules."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch import op_registry, out_dtypes, writes
from tensorplug.core.dispatch.composite_runs import run_decomposition
from tensorplug.core.dispatch.execution import broadcast_error
from tensorplug.core.dispatch.op_registry import Delegated, Op, Spec
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase

from ..transforms.levels import (
    ActiveLevels,
    map_tensors,
    run_spec,
    state,
    tensors_in,
    without_target,
)
from . import composite_rules, plugin_rules, primitive_rules
from .batched_tensor import BatchedTensor, BatchLevel, check_randomness, front, moved, wrap
from .vmap_rules import VMAP_RULES, VmapInfo, VmapRule
from .whole_composites import call_whole

COPY = op_registry.handle("copy")


def innermost(values: Any) -> BatchLevel | None:
    """Return the innermost level at which one of the tensors is batched."""
    found = None
    for tensor in tensors_in(values):
        if isinstance(tensor, BatchedTensor):
            level = tensor.level
            if found is None or level.position > found.position:
                found = level
    return found


def call_batched(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op with batched tensors among its arguments."""
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"vmap: {op.name}(..., out=) is not possible inside of vmap; use what it returns"
        )
    if op.kind == "composite":
        if op.inplace_of is not None:
            return _inplace(op.inplace_of, op.name, args, kwargs)
        ranked = VMAP_RULES.ranked(op.name)
        if not ranked and op.derivative is None:
            return run_decomposition(op, args, kwargs)
        values = op.arguments(args, kwargs)
        if type(values) is Delegated:
            return values.result
        level = innermost(values)
        if level is not None:
            for rule in ranked:
                result = _apply(rule, op, None, values, level)
                if result is not NotImplemented:
                    return result
            result = call_whole(op, values, level)
            if result is not NotImplemented:
                return _wrapped(result, level)
        return op.decompose(values)
    return run_spec(op, op.function(*args, **kwargs))


def spec_batched(op: Op, spec: Spec) -> Any:
    """Call a primitive with batched tensors among its canonical arguments."""
    level = innermost(spec.values)
    if level is None:
        return _random(op, spec)
    for rule in VMAP_RULES.ranked(op.name):
        result = _apply(rule, op, spec, spec.values, level)
        if result is not NotImplemented:
            return result
    if spec.outputs[0][0] is None:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
            f"over {op.name.lstrip('_')}."
        )
    with ActiveLevels(state.batches[: level.position], state.tangents):
        values = map_tensors(spec.values, lambda t: primitive_rules.logical(t, level))
        default = primitive_rules.pointwise if op.pointwise else primitive_rules.one_by_one
        results = default(op, spec, values, level.size)
    return _wrapped(results, level)


def _apply(
    rule: VmapRule, op: Op, spec: Spec | None, values: tuple[Any, ...], level: BatchLevel
) -> Any:
    """Apply a rule to a call with these canonical arguments; NotImplemented if it does not serve it."""
    if not rule.shared:
        return plugin_rules.call(rule, op, values, level)
    with ActiveLevels(state.batches[: level.position], state.tangents):
        seen = map_tensors(values, lambda t: primitive_rules.logical(t, level))
        if spec is None:
            info = VmapInfo(level.size, level.randomness)
            results = getattr(composite_rules, rule.function)(op, seen, info)
        else:
            results = getattr(primitive_rules, rule.function)(op, spec, seen, level.size)
    return results if results is NotImplemented else _wrapped(results, level)


def _wrapped(results: Any, level: BatchLevel) -> Any:
    if isinstance(results, TensorBase):
        return wrap(results, 0, level)
    items = [wrap(result, 0, level) for result in results]
    if not isinstance(results, tuple):
        return items
    return type(results)(*items) if hasattr(results, "_fields") else type(results)(items)


def _random(op: Op, spec: Spec) -> Any:
    """Draw random bits by the innermost vmap's rule."""
    level: BatchLevel = state.batches[-1]
    check_randomness(level.randomness)
    with ActiveLevels(state.batches[:-1], state.tangents):
        if level.randomness == "same":
            return run_spec(op, spec)
        return wrap(primitive_rules.random_bits(op, spec, level.size), 0, level)


# --- writing in place -------------------------------------------------------------------------


def _inplace(op: Op, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write into the tensor behind: by way of ``copy_``, of what the op itself returns."""
    target = args[0]
    if op is COPY:
        _copy(target, args[1] if len(args) > 1 else kwargs["src"])
        return target
    if op.layout:
        _relayout(target, op.call(*args, **kwargs))
        return target
    _check_target(name, target, innermost((args, tuple(kwargs.values()))))
    if op.inplace_body is not None and not VMAP_RULES.ranked(op.name):
        written = op.inplace_body(*args, **kwargs)
        if written is not NotImplemented:
            return written
    result = op.call(*without_target(args, kwargs), **kwargs)
    if result._shape != target._shape:
        raise broadcast_error(name, target._shape, result._shape)
    out_dtypes.check_out(name, target, result._key.dtype, result._key)
    writes.inplace(COPY, "copy_", target, (result,), {})
    return target


def _relayout(target: Any, shown: Any) -> None:
    target.value, target.bdim = shown.value, shown.bdim
    target._array, target._shape = shown._array, shown._shape


def _check_target(name: str, target: Any, level: BatchLevel | None) -> None:
    """Refuse to write what each sample has of its own to a tensor that all samples share."""
    if level is not None and not (isinstance(target, BatchedTensor) and target.level is level):
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in "
            "extra_args that has more elements than `self`. This happened due to `other` being vmapped "
            "over but `self` not being vmapped over in a vmap. Please try to use out-of-place operators "
            "instead of inplace arithmetic; if `self` is made inside of vmap, make it batched, for example "
            "with new_zeros() of a batched tensor."
        )


def _copy(target: Any, source: Any) -> None:
    level = innermost((target, source))
    assert level is not None
    _check_target("inplace arithmetic", target, level)
    shape = target._shape
    if isinstance(source, TensorBase) and len(source._shape) > len(shape):
        raise broadcast_error("copy_", shape, source._shape)
    with ActiveLevels(state.batches[: level.position], state.tangents):
        whole = moved(target.value, target.bdim, 0)
        if isinstance(source, BatchedTensor) and source.level is level:
            source = primitive_rules.padded(front(source, level), len(shape))
        writes.inplace(COPY, "copy_", whole, (source,), {})


dispatch_state.call_batched = call_batched
dispatch_state.spec_batched = spec_batched
