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
    for function in (
        nll_loss,
        nll_loss_backward,
        cross_entropy,
        cross_entropy_backward,
    ):
        table.add(function.__name__, function, dtypes=FLOATS)


def _dense(array: Any | None) -> Any | None:
    return None if array is None else cp.ascontiguousarray(array)


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


def nll_loss(input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str) -> Any:
    """Return the negative log-likelihood of target classes."""
    kernel = ("nll", sources.blocks_for(target.size), _extents(input))
    return _reduced(kernel, input, target, weight, ignore_index, reduction)


def cross_entropy(
    input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> Any:
    """Return the cross-entropy between scores and target classes."""
    kernel = _by_rows("cross_entropy", input, target.size)
    return _reduced(kernel, input, target, weight, ignore_index, reduction)


def _reduced(
    kernel: tuple[str, int, tuple[Any, ...]],
    input: Any,
    target: Any,
    weight: Any | None,
    ignore_index: int,
    reduction: str,
) -> Any:
    """Return what a kernel for losses finds, or their sum or mean."""
    count, name = target.size, name_of(input)
    losses, weights = (cp.empty(target.shape, _computed(input)) for _ in range(2))
    if count:
        function, blocks, extents = kernel
        arguments = (_dense(input), _dense(target), _dense(weight), losses, weights, *extents)
        ignored = np.int64(ignore_index)
        sources.launch("losses", function, name, blocks, (*arguments, ignored))
    if reduction == "none":
        return losses.astype(input.dtype, copy=False)
    result = cp.empty((), input.dtype)
    options = (np.int64(count), np.int32(reduction == "mean"))
    sources.launch("losses", "sum_losses", name, 1, (losses, weights, result, *options))
    return result


def _computed(array: Any) -> Any:
    return np.dtype(np.float64 if array.dtype == np.float64 else np.float32)


def nll_loss_backward(
    g: Any, input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`nll_loss`'s input, of which only the shape counts."""
    output = cp.zeros(input.shape, input.dtype)
    if output.size:
        options = _shares(g, input, target, weight, ignore_index, reduction)
        arguments = (*options, output, *_extents(input), np.int64(ignore_index))
        blocks = sources.blocks_for(target.size)
        sources.launch("losses", "nll_backward", name_of(input), blocks, arguments)
    return output


def cross_entropy_backward(
    g: Any, input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> Any:
    """Return the gradient of :func:`cross_entropy`'s input."""
    output = cp.empty(input.shape, input.dtype)
    if output.size:
        gradient, each, *options = _shares(g, input, target, weight, ignore_index, reduction)
        kernel, blocks, extents = _by_rows("cross_entropy_gradient", input, target.size)
        arguments = (
            gradient,
            each,
            _dense(input),
            *options,
            output,
            *extents,
            np.int64(ignore_index),
        )
        sources.launch("losses", kernel, name_of(input), blocks, arguments)
    return output


def _shares(
    g: Any, input: Any, target: Any, weight: Any | None, ignore_index: int, reduction: str
) -> list[Any]:
    """Return what kernels need to know what each sample's loss counts: the last is the sum of the weights."""
    each, chosen, factors, whole = reduction == "none", _dense(target), _dense(weight), None
    if reduction == "mean":
        whole = cp.empty((), _computed(input))
        sizes = (np.int64(target.size), np.int64(input.shape[1]), np.int64(ignore_index))
        arguments = (chosen, factors, whole, *sizes)
        sources.launch("losses", "sum_weights", name_of(input), 1, arguments)
    gradient = cp.ascontiguousarray(cp.broadcast_to(g, target.shape) if each else g)
    return [gradient, np.int32(each), chosen, factors, whole]
