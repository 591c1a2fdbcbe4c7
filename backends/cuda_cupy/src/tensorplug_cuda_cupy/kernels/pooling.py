"""Pooling over windows, forward and backward, in rows or channels last."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable, Shape, deterministic_wanted

from .. import sources
from .._cupy import cp
from ..dtypes import name_of
from .indexing import combine
from .layouts import channels_last, dense, empty_like, is_wide, like

# As in sources/pooling.cu.
_NAMES = ("size", "where", "kernel", "stride", "padding", "dilation")
WINDOWS = np.dtype(
    [("samples", np.int64), ("channels", np.int64), ("channels_last", np.int64)]
    + [(name, np.int64, 3) for name in _NAMES]
)
_LARGE = 256  # elements of a window that a block shares


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (
        max_pool, max_pool_backward, avg_pool, avg_pool_backward, adaptive_avg_pool,
        adaptive_avg_pool_backward,
    ):  # fmt: skip
        table.add(function.__name__, function, dtypes=FLOATS)


def _windows(like: Any, *numbers: Shape) -> Any:
    """Return the kernels' argument: the last three dimensions, with ones before where there are fewer."""
    return _described(like.shape[:2], like.flags.c_contiguous, numbers)


@lru_cache(maxsize=1024)
def _described(outer: Shape, by_rows: bool, numbers: tuple[Shape, ...]) -> Any:
    windows = np.zeros(1, WINDOWS)
    windows["samples"], windows["channels"] = outer
    windows["channels_last"] = not by_rows
    for name, values in zip(_NAMES, numbers, strict=True):
        missing = 3 - len(values)
        windows[name] = (*(0 if name == "padding" else 1,) * missing, *values)
    return sources.by_value(windows)


def _counts(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    """Return the number of windows along each dimension, as the op counts them."""
    counts = []
    for s, k, st, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        count = (-(-span // st) if ceil_mode else span // st) + 1
        if ceil_mode and (count - 1) * st >= s + p:
            count -= 1
        counts.append(count)
    return tuple(counts)


def max_pool(
    input: Any, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Any, Any]:
    """Return the largest element of each window, and its place in the flattened plane."""
    image = dense(input)
    size = tuple(image.shape[2:])
    where = _counts(size, kernel, stride, padding, dilation, ceil_mode)
    shape = (*image.shape[:2], *where)
    values, places = empty_like(image, shape), empty_like(image, shape, np.dtype(np.int64))
    if values.size:
        windows = _windows(image, size, where, kernel, stride, padding, dilation)
        arguments = (image, values, places, windows, np.int64(values.size))
        blocks = sources.blocks_for(values.size)
        wide = is_wide(image.shape, shape)
        sources.launch("pooling", "max_pool", name_of(image), blocks, arguments, WIDE=wide)
    return values, places


def max_pool_backward(gradient: Any, indices: Any, shape: Shape) -> Any:
    """Return the gradient at the places where the maxima were."""
    if deterministic_wanted():
        return _max_pool_backward_in_order(gradient, indices, shape)
    places = dense(indices)
    from_above = like(gradient, places)
    wide_type = np.dtype(np.float64 if gradient.dtype == np.float64 else np.float32)
    result = empty_like(places, tuple(shape), wide_type)
    result[...] = 0
    if places.size and result.size:
        size, where = tuple(shape[2:]), tuple(places.shape[2:])
        ones = (1,) * len(size)
        windows = _windows(places, size, where, ones, ones, ones, ones)
        arguments = (from_above, places, result, windows, np.int64(places.size))
        blocks = sources.blocks_for(places.size)
        wide = is_wide(tuple(shape), places.shape)
        name = name_of(gradient)
        sources.launch("pooling", "max_pool_backward", name, blocks, arguments, WIDE=wide)
    return result.astype(gradient.dtype, copy=False)


def _max_pool_backward_in_order(gradient: Any, indices: Any, shape: Shape) -> Any:
    """Add the gradients of windows that share a maximum in their order."""
    result = cp.zeros(shape, gradient.dtype)
    planes, plane = shape[0] * shape[1], math.prod(shape[2:])
    if indices.size and result.size:
        first = cp.arange(planes, dtype=np.int64)[:, None] * plane
        places = cp.ascontiguousarray(indices).reshape(planes, -1) + first
        values = cp.ascontiguousarray(gradient).reshape(-1)
        combine(result.reshape(-1), places.reshape(-1), values, "sum")
    return result


def avg_pool(
    input: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    """Return the mean of each window."""
    image = dense(input)
    size, ones = tuple(image.shape[2:]), (1,) * len(kernel)
    where = _counts(size, kernel, stride, padding, ones, ceil_mode)
    output = empty_like(image, (*image.shape[:2], *where))
    if output.size:
        windows = _windows(image, size, where, kernel, stride, padding, ones)
        options = (np.int32(count_include_pad), np.int64(divisor or 0))
        arguments = (image, output, windows, np.int64(output.size), *options)
        name, blocks = "avg_pool", sources.blocks_for(output.size)
        if math.prod(kernel) >= _LARGE and not channels_last(image):
            name, blocks = "avg_pool_large", output.size
        wide = is_wide(image.shape, output.shape)
        sources.launch("pooling", name, name_of(image), blocks, arguments, WIDE=wide)
    return output


def avg_pool_backward(
    g: Any,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    _ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    """Return the gradient of :func:`avg_pool`, whose input had these spatial sizes."""
    gradient = dense(g)
    result = empty_like(gradient, (*gradient.shape[:2], *size))
    if result.size:
        ones = (1,) * len(kernel)
        windows = _windows(gradient, tuple(size), gradient.shape[2:], kernel, stride, padding, ones)
        options = (np.int32(count_include_pad), np.int64(divisor or 0))
        arguments = (gradient, result, windows, np.int64(result.size), *options)
        blocks = sources.blocks_for(result.size)
        wide = is_wide(gradient.shape, result.shape)
        name = name_of(gradient)
        sources.launch("pooling", "avg_pool_backward", name, blocks, arguments, WIDE=wide)
    return result


def adaptive_avg_pool(input: Any, size: Shape) -> Any:
    """Return the means of so many shares of each dimension, which may overlap."""
    image = dense(input)
    return _adaptive("adaptive_avg_pool", image, tuple(image.shape[2:]), tuple(size), tuple(size))


def adaptive_avg_pool_backward(g: Any, shape: Shape) -> Any:
    """Return the gradient of :func:`adaptive_avg_pool`, whose input had this shape."""
    gradient = dense(g)
    size, where = tuple(shape[2:]), tuple(gradient.shape[2:])
    return _adaptive("adaptive_avg_pool_backward", gradient, size, where, size)


def _adaptive(name: str, array: Any, size: Shape, where: Shape, made: Shape) -> Any:
    result = empty_like(array, (*array.shape[:2], *made))
    if result.size and array.size:
        ones = (1,) * len(size)
        windows = _windows(array, size, where, ones, ones, (0,) * len(size), ones)
        arguments = (array, result, windows, np.int64(result.size))
        wide = is_wide(array.shape, result.shape)
        blocks = sources.blocks_for(result.size)
        sources.launch("pooling", name, name_of(array), blocks, arguments, WIDE=wide)
    elif result.size:
        result[...] = 0
    return result
