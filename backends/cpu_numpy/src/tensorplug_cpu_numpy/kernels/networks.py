"""Kernels of nn's ops, where NumPy does in a few passes what the ops' bodies do in many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

Array = np.ndarray[Any, Any]
_add: Any = np.add.reduce


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (
        linear,
        standardize,
        standardize_gradient,
        nll_loss,
    ):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)
    table.add("embedding_rows", embedding_rows)
    table.add("max_pool", max_pool)
    table.add("max_pool_gradient", max_pool_gradient)
    table.add("max_pool_gradient", namespace.through_float32(max_pool_gradient), dtypes=halves)


def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    """Return ``input @ weight.T + bias``."""
    if weight.dtype.kind in "biu":
        output: Array = np.matmul(input, weight.T).astype(input.dtype, copy=False)
    elif input.ndim > 2 and input.flags.c_contiguous and weight.ndim == 2:
        flat = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        output = np.matmul(flat, weight.T).reshape(*input.shape[:-1], weight.shape[0])
    else:
        output = np.matmul(input, weight.T)
    if bias is None:
        return output
    if output.ndim:
        output += bias
        return output
    return np.asarray(output + bias)


# --- pooling ------------------------------------------------------------------------------------


def _inside(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, where: Shape
) -> Iterator[tuple[Shape, tuple[slice, ...], tuple[slice, ...]]]:
    """Yield, for each element of the kernel, which windows it is inside the input for, and where there."""
    for at in itertools.product(*map(range, kernel)):
        windows, places = [], []
        for i, s, st, p, d, w in zip(at, size, stride, padding, dilation, where, strict=True):
            offset = i * d - p
            low = max(0, -(offset // st))  # the first window with offset + st * window >= 0
            high = min(w, (s - 1 - offset) // st + 1)
            if high <= low:
                break
            windows.append(slice(low, high))
            places.append(slice(offset + st * low, offset + st * (high - 1) + 1, st))
        else:
            yield at, tuple(windows), tuple(places)


def _pooled_size(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    result = []
    for s, k, st, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        count = (-(-span // st) if ceil_mode else span // st) + 1
        if ceil_mode and (count - 1) * st >= s + p:
            count -= 1
        result.append(count)
    return tuple(result)


def max_pool(
    input: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    ceil_mode: bool,
) -> tuple[Array, Array]:
    """Return the largest element of each window, and its place in the flattened plane."""
    size = input.shape[2:]
    where = _pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    planes = input.shape[0] * input.shape[1]
    # The planes come last: small ones would make for short loops.
    moved = np.ascontiguousarray(
        input.reshape(planes, *size).transpose(*range(1, input.ndim - 1), 0)
    )
    best = np.full((*where, planes), _lowest(input.dtype), input.dtype)
    inside = list(_inside(size, kernel, stride, padding, dilation, where))
    for _, windows, places in inside:
        np.maximum(best[windows], moved[places], out=best[windows])
    # The first element that equals the maximum: the least of the numbers k | (0 if equal else all ones),
    # which is quicker than writing under a mask.
    number = np.min_scalar_type(math.prod(kernel))
    none = np.iinfo(number).max
    which = np.full(best.shape, none, number)
    numbers = {at: n for n, at in enumerate(itertools.product(*map(range, kernel)))}
    for at, windows, places in inside:
        differs = (moved[places] != best[windows]).astype(number)
        differs *= none
        differs |= number.type(numbers[at])
        np.minimum(which[windows], differs, out=which[windows])
    if input.dtype.kind not in "biu" and (best != best).any():  # NaN: the last counts
        for at, windows, places in inside:
            candidate = moved[places]
            np.copyto(which[windows], numbers[at], where=candidate != candidate)
    index = _flat_places(size, kernel, stride, padding, dilation, where, which)
    shape = (*input.shape[:2], *where)
    back = (best.ndim - 1, *range(best.ndim - 1))
    return (
        np.ascontiguousarray(best.transpose(back)).reshape(shape),
        np.ascontiguousarray(index.transpose(back)).reshape(shape),
    )


def _lowest(dtype: Any) -> Any:
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _flat_places(
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    where: Shape,
    which: Array,
) -> Array:
    """Return the place in the flattened plane of the kernel's element `which` of each window."""
    within = np.zeros(kernel, np.int64)
    first = np.zeros((*where, 1), np.int64)
    for dim, (k, s, p, d, w) in enumerate(
        zip(kernel, stride, padding, dilation, where, strict=True)
    ):
        row = math.prod(size[dim + 1 :])
        within += (np.arange(k) * d * row).reshape(
            [-1 if i == dim else 1 for i in range(len(size))]
        )
        starts = (np.arange(w) * s - p) * row
        first += starts.reshape([-1 if i == dim else 1 for i in range(len(size) + 1)])
    return within.reshape(-1).take(which) + first


def max_pool_gradient(gradient: Array, indices: Array, shape: Shape) -> Array:
    """Return the gradient at the places where the maxima were."""
    n, c, *size = shape
    count = math.prod(size)
    starts = (np.arange(n * c, dtype=np.int64) * count).reshape(n * c, 1)
    flat = (indices.reshape(n * c, math.prod(indices.shape[2:])) + starts).reshape(-1)
    if gradient.dtype == np.float64 and gradient.size:
        total = np.bincount(flat, weights=gradient.reshape(-1), minlength=n * c * count)
        return total.reshape(shape)
    result = np.zeros(n * c * count, gradient.dtype)
    np.add.at(result, flat, gradient.reshape(-1))
    return result.reshape(shape)


# --- normalisation and losses -------------------------------------------------------------------


def standardize(input: Array, dim: Shape, eps: float) -> tuple[Array, Array, Array]:
    """Return the input with mean 0 and variance 1, the means, and one over the deviations."""
    count = math.prod([input.shape[d] for d in dim])
    mean = np.asarray(_add(input, dim, None, None, True) / input.dtype.type(max(count, 1)))
    output = input - mean
    squares = _add(output * output, dim, None, None, True)
    rstd = squares / input.dtype.type(max(count, 1))
    rstd += input.dtype.type(eps)
    rstd = np.asarray(1 / np.sqrt(rstd), input.dtype)
    output *= rstd
    return output, mean, rstd


def standardize_gradient(
    g_output: Array, g_mean: Array, g_rstd: Array, output: Array, rstd: Array, dim: Shape
) -> Array:
    """Return the gradient of :func:`standardize`."""
    count = output.dtype.type(max(math.prod([output.shape[d] for d in dim]), 1))
    along = _add(g_output * output, dim, None, None, True) * rstd
    along += g_rstd * (rstd * rstd)
    along /= count
    constant = _add(g_output, dim, None, None, True) * rstd
    constant -= g_mean
    constant /= count
    result = g_output * rstd
    result -= output * along
    result -= constant
    return result


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
        raise IndexError(f"Target {wrong} is out of bounds: there are {classes} classes")
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


def embedding_rows(weight: Array, indices: Array, *_: Any) -> Array:
    """Return the rows of `weight` that `indices` names."""
    if indices.size and indices.min() < 0:
        raise IndexError(f"index {indices.min()} is out of bounds: there are {len(weight)} rows")
    return weight.take(indices, 0)
