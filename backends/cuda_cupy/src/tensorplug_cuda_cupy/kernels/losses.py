"""Losses of classes. A target that is no class makes NaN: an error would have to wait for the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (negative_log_likelihood, class_cross_entropy, class_cross_entropy_gradient):
        table.add(function.__name__, function, dtypes=FLOATS)


def _dense(array: Any | None) -> Any | None:
    return None if array is None else cp.ascontiguousarray(array)


def negative_log_likelihood(
    input: Any, target: Any, weight: Any | None, ignore_index: int
) -> tuple[Any, Any]:
    """Return what each sample loses, and what it weighs."""
    losses, weights = cp.empty(target.shape, input.dtype), cp.empty(target.shape, input.dtype)
    if target.size:
        arguments = (
            _dense(input), _dense(target), _dense(weight), losses, weights, *_extents(input), np.int64(ignore_index),
        )  # fmt: skip
        blocks = sources.blocks_for(target.size)
        sources.launch("losses", "negative_log_likelihood", name_of(input), blocks, arguments)
    return losses, weights


def _extents(input: Any) -> tuple[Any, Any, Any]:
    """Return samples, classes and positions."""
    samples, classes = input.shape[:2]
    return np.int64(samples), np.int64(classes), np.int64(math.prod(input.shape[2:]))


def _by_rows(name: str, input: Any, count: int) -> tuple[str, int, tuple[Any, ...]]:
    """Return the kernel for scores that lie together or apart, its blocks and the extents it takes."""
    samples, classes, positions = _extents(input)
    if positions == 1:
        return f"{name}_rows", count, (np.int64(count), classes)
    return f"{name}_columns", sources.blocks_for(count), (samples, classes, positions)


def class_cross_entropy(
    input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> Any:
    """Return the cross-entropy between scores and target classes."""
    count, name = target.size, name_of(input)
    computed = np.dtype(np.float64 if input.dtype == np.float64 else np.float32)
    losses, weights = cp.empty(target.shape, computed), cp.empty(target.shape, computed)
    if count:
        kernel, blocks, extents = _by_rows("cross_entropy", input, count)
        arguments = (_dense(input), _dense(target), _dense(weight), losses, weights, *extents)
        sources.launch("cross_entropy", kernel, name, blocks, (*arguments, np.int64(ignore_index)))
    if reduction == "none":
        return losses.astype(input.dtype, copy=False)
    result = cp.empty((), input.dtype)
    options = (np.int64(count), np.int32(reduction == "mean"))
    sources.launch("cross_entropy", "sum_losses", name, 1, (losses, weights, result, *options))
    return result


def class_cross_entropy_gradient(
    g: Any, input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`class_cross_entropy`'s input."""
    output = cp.empty(input.shape, input.dtype)
    if not output.size:
        return output
    count, name = target.size, name_of(input)
    array, chosen, factors = _dense(input), _dense(target), _dense(weight)
    ignored, whole = np.int64(ignore_index), None
    if reduction == "mean":
        whole = cp.empty((), np.float64 if input.dtype == np.float64 else np.float32)
        sizes = (np.int64(count), np.int64(input.shape[1]), ignored)
        sources.launch("cross_entropy", "sum_weights", name, 1, (chosen, factors, whole, *sizes))
    kernel, blocks, extents = _by_rows("cross_entropy_gradient", input, count)
    each = np.int32(reduction == "none")
    gradient = cp.ascontiguousarray(cp.broadcast_to(g, target.shape) if each else g)
    arguments = (gradient, each, array, chosen, factors, whole, output, *extents, ignored)
    sources.launch("cross_entropy", kernel, name, blocks, arguments)
    return output
