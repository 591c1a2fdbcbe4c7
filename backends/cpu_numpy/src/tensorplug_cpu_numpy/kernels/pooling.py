"""Pooling, in a few passes over planes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

from ._formats import laid_out

Array = np.ndarray[Any, Any]


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    table.add("max_pool", max_pool)
    table.add("max_pool_backward", max_pool_backward)
    table.add("max_pool_backward", namespace.through_float32(max_pool_backward), dtypes=halves)


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
    empty = which == none if max(dilation) > 1 else None  # windows that lie in the padding
    if empty is not None:
        which[empty] = 0
    index = _flat_places(size, kernel, stride, padding, dilation, where, which)
    if empty is not None:
        index[empty] = 0
    shape = (*input.shape[:2], *where)
    back = (best.ndim - 1, *range(best.ndim - 1))
    found = [np.ascontiguousarray(array.transpose(back)).reshape(shape) for array in (best, index)]
    return laid_out(found[0], input), laid_out(found[1], input)


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


def max_pool_backward(gradient: Array, indices: Array, shape: Shape) -> Array:
    """Return the gradient at the places where the maxima were."""
    n, c, *size = shape
    count = math.prod(size)
    starts = (np.arange(n * c, dtype=np.int64) * count).reshape(n * c, 1)
    flat = (indices.reshape(n * c, math.prod(indices.shape[2:])) + starts).reshape(-1)
    if gradient.dtype == np.float64 and gradient.size:
        total = np.bincount(flat, weights=gradient.reshape(-1), minlength=n * c * count)
        return laid_out(total.reshape(shape), gradient)
    result = np.zeros(n * c * count, gradient.dtype)
    np.add.at(result, flat, gradient.reshape(-1))
    return laid_out(result.reshape(shape), gradient)
