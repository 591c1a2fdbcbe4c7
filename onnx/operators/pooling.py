"""Pooling over windows and over all of an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.nn import functional as F

from ..registry import operator
from .convolution import padded, padding_of

__all__: list[str] = []

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def _windows(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int,
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the padding, with what ceil_mode adds behind, and the number of windows of each dimension."""
    amounts = padding_of(x.shape[2:], kernel, strides, dilations, pads, auto_pad)
    counts: list[int] = []
    for i, (before, after) in enumerate(amounts):
        reach = (kernel[i] - 1) * dilations[i] + 1
        length = x.shape[i + 2] + before + after
        room = length - reach
        count = room // strides[i] + 1
        if ceil_mode and room % strides[i] and count * strides[i] < x.shape[i + 2] + before:
            count += 1  # the last window begins inside the image or the padding before it
        counts.append(count)
        amounts[i] = before, max((count - 1) * strides[i] + reach - x.shape[i + 2] - before, after)
    return amounts, counts


def _unfolded(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counts: Sequence[int],
) -> Tensor:
    """Return views of all windows, their elements in the last dimension."""
    for i, k in enumerate(kernel):
        reach = (k - 1) * dilations[i] + 1
        x = x.unfold(i + 2, reach, strides[i]).narrow(i + 2, 0, counts[i])[..., :: dilations[i]]
    return x.flatten(2 + len(kernel))


def _defaults(
    kernel: Sequence[int], strides: Sequence[int] | None, dilations: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    count = len(kernel)
    return list(strides or [1] * count), list(dilations or [1] * count)


@operator("MaxPool")
def max_pool(
    X: Tensor,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    n_outputs: int,
) -> Any:
    strides, dilations = _defaults(kernel_shape, strides, dilations)
    amounts, counts = _windows(X, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    fits = all(b == a and b <= k // 2 for (b, a), k in zip(amounts, kernel_shape, strict=True))
    if fits and n_outputs == 1 and len(kernel_shape) in _MAX and X.dtype.is_floating_point:
        padding = tuple(before for before, _ in amounts)
        pool = _MAX[len(kernel_shape)]
        return pool(X, tuple(kernel_shape), tuple(strides), padding, tuple(dilations))
    lowest = float("-inf") if X.dtype.is_floating_point else _lowest(X.dtype)
    windows = _unfolded(padded(X, amounts, lowest), kernel_shape, strides, dilations, counts)
    if n_outputs == 1:
        return ops.amax(windows, -1)
    best = ops.argmax(windows, dim=-1)
    places = ops.zeros_like(best)
    rest = best
    steps = list(X.shape[2:])
    weights = [math.prod(steps[i + 1 :]) for i in range(len(steps))]
    if storage_order:  # columns first
        weights = [math.prod(steps[:i]) for i in range(len(steps))]
    for i in reversed(range(len(kernel_shape))):
        offset = ops.remainder(rest, kernel_shape[i])
        rest = ops.div(rest, kernel_shape[i], rounding_mode="floor")
        starts = ops.arange(counts[i], device=X.device) * strides[i] - amounts[i][0]
        shape = [1] * best.dim()
        shape[i + 2] = -1
        places = places + (starts.reshape(shape) + offset * dilations[i]) * weights[i]
    images = ops.arange(X.shape[0] * X.shape[1], device=X.device) * math.prod(steps)
    places = places + images.reshape((X.shape[0], X.shape[1], *[1] * len(steps)))
    return ops.amax(windows, -1), places


def _lowest(dtype: Any) -> int:
    from tensorplug.core.device.dtypes import iinfo

    return iinfo(dtype).min


@operator("AveragePool")
def average_pool(
    X: Tensor,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    strides, dilations = _defaults(kernel_shape, strides, dilations)
    own = padding_of(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    amounts, counts = _windows(X, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if not any(a for pair in amounts for a in pair) and set(dilations) == {1}:
        pools = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
        if len(kernel_shape) in pools:
            return pools[len(kernel_shape)](X, tuple(kernel_shape), tuple(strides))
    sums = ops.sum(_unfolded(padded(X, amounts), kernel_shape, strides, dilations, counts), -1)
    there = ops.ones((1, 1, *X.shape[2:]), dtype=X.dtype, device=X.device)
    if count_include_pad:  # what ceil_mode adds does not count
        there = padded(there, own, 1.0)
        amounts = [(0, max(a - o, 0)) for (_, a), (_, o) in zip(amounts, own, strict=True)]
    number = _unfolded(padded(there, amounts), kernel_shape, strides, dilations, counts)
    return sums / ops.sum(number, -1)


@operator("LpPool")
def lp_pool(
    X: Tensor,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: float = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    strides, dilations = _defaults(kernel_shape, strides, dilations)
    amounts, counts = _windows(X, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    windows = _unfolded(padded(X, amounts), kernel_shape, strides, dilations, counts)
    return ops.sum(ops.abs(windows) ** p, -1) ** (1 / p)


def _all_but_channels(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


@operator("GlobalAveragePool")
def global_average_pool(X: Tensor) -> Tensor:
    return ops.mean(X, _all_but_channels(X), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(X: Tensor) -> Tensor:
    return ops.amax(X, _all_but_channels(X), keepdim=True)


@operator("GlobalLpPool")
def global_lp_pool(X: Tensor, *, p: float = 2) -> Tensor:
    return ops.sum(ops.abs(X) ** p, _all_but_channels(X), keepdim=True) ** (1 / p)


@operator("MaxUnpool", host=("output_shape",))
def max_unpool(
    X: Tensor,
    I: Tensor,  # noqa: E741  (ONNX's name)
    output_shape: Sequence[int] | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    count = len(kernel_shape)
    strides, pads = list(strides or [1] * count), list(pads or [0] * 2 * count)
    whole = [
        (X.shape[i + 2] - 1) * strides[i] + kernel_shape[i] - pads[i] - pads[i + count]
        for i in range(count)
    ]
    inner = list(X.shape[:2]) + whole
    flat = ops.zeros(math.prod(inner), dtype=X.dtype, device=X.device)
    result = ops.scatter(flat, 0, I.reshape(-1), X.reshape(-1)).reshape(inner)
    if output_shape:
        behind = [n - m for n, m in zip(output_shape, inner, strict=True)]
        result = padded(result, [(0, n) for n in behind])
    return result
