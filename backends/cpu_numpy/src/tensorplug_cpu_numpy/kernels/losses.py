"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

Array = np.ndarray[Any, Any]


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    floats = (dtype_named("float32"), dtype_named("float64"))
    table.add("cross_entropy", cross_entropy, dtypes=floats)
    table.add("cross_entropy", namespace.through_float32(cross_entropy), dtypes=halves)
    table.add("nll_loss", nll_loss)
    table.add("nll_loss", namespace.through_float32(nll_loss), dtypes=halves)


def cross_entropy(
    input: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str
) -> Array:
    """Return the cross-entropy between scores and target classes."""
    if input.size:
        input = input - input.max(1, keepdims=True)
        input -= np.log(np.exp(input).sum(1, keepdims=True))
    return nll_loss(input, target, weight, ignore_index, reduction)


def nll_loss(
    input: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str
) -> Array:
    """Return the negative log-likelihood of target classes."""
    ignored = target == ignore_index
    some = bool(ignored.any())
    chosen = np.where(ignored, 0, target) if some else target
    classes = input.shape[1]
    if chosen.size and (chosen.min() < 0 or chosen.max() >= classes):
        wrong = chosen[(chosen < 0) | (chosen >= classes)].reshape(-1)[0]
        raise IndexError(f"Target {wrong} is out of bounds. There are {classes} classes")
    if input.ndim == 2:
        picked = input[np.arange(len(chosen)), chosen]
    else:
        picked = np.take_along_axis(input, chosen[:, None], 1)[:, 0]
    if weight is None:
        losses, weights = -picked, np.ones(picked.shape, input.dtype)
    else:
        weights = weight[chosen]
        losses = -picked * weights
    if some:
        losses[ignored] = 0
        weights[ignored] = 0
    if reduction == "none":
        return losses
    total = losses.sum()
    return np.asarray(total if reduction == "sum" else total / weights.sum())
