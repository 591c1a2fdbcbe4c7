"""How rules in the form that plugins write are applied."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import Op

from ..transforms.levels import ActiveLevels, state
from ..transforms.pytree import broadcast_prefix, tree_flatten, tree_unflatten
from .batched_tensor import BatchLevel, is_batched, wrap
from .vmap_rules import VmapInfo, VmapRule


def call(rule: VmapRule, op: Op, values: tuple[Any, ...], level: BatchLevel) -> Any:
    """Apply a rule to a call whose canonical arguments hold tensors that are batched at `level`.

    What the rule does not serve is NotImplemented.
    """
    leaves, spec = tree_flatten(values)
    dims = [leaf.bdim if is_batched(leaf, level) else None for leaf in leaves]
    plain = [leaf.value if is_batched(leaf, level) else leaf for leaf in leaves]
    with ActiveLevels(state.batches[: level.position], state.tangents):
        info = VmapInfo(level.size, level.randomness)
        result = rule.function(info, tree_unflatten(dims, spec), *tree_unflatten(plain, spec))
    if result is NotImplemented:
        return result
    return placed(*two_returns(result, op.name), level, op.name)


def two_returns(result: Any, name: str) -> tuple[Any, Any]:
    """Return outputs and their batch dimensions, once a rule returned these two.

    A tensor of two rows would come apart into them.
    """
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise RuntimeError(
            f"vmap of {name}: expected its rule to have two returns, (outputs, out_dims), got {result!r}"
        )
    return result[0], result[1]


def placed(outputs: Any, out_dims: Any, level: BatchLevel, name: str) -> Any:
    """Return what a rule returned as tensors that are batched at `level`."""
    results, spec = tree_flatten(outputs)
    where = broadcast_prefix(out_dims, spec)
    if where is None:
        raise RuntimeError(
            f"vmap of {name}: the returned out_dims {out_dims!r} do not fit its outputs"
        )
    wrapped = [
        value if dim is None else wrap(value, dim % value.ndim, level)
        for value, dim in zip(results, where, strict=True)
    ]
    return tree_unflatten(wrapped, spec)
