"""Resizing of images: each dimension in turn, from a few neighbours with weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor

from ..registry import operator

__all__: list[str] = []


def _source(
    x: int, length: int, out: int, scale: float, transform: str, start: float, end: float
) -> float:
    """Return where in the input an output's element comes from."""
    size = scale * length
    if transform == "align_corners":
        return 0.0 if size == 1 else x * (length - 1) / (size - 1)
    if transform == "asymmetric":
        return x / scale
    if transform == "tf_crop_and_resize":
        if size == 1:
            return start * (length - 1) + (end - start) * (length - 1) / 2
        return start * (length - 1) + x * (end - start) * (length - 1) / (size - 1)
    if transform == "pytorch_half_pixel" and size == 1:
        return -0.5
    centre = (x + 0.5) / scale - 0.5
    if transform == "half_pixel_symmetric":
        centre += length / 2 * (1 - out / size)
    return centre


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _triangle(x: float, a: float) -> float:
    return max(1 - abs(x), 0.0)


_KERNELS: dict[str, tuple[Callable[[float, float], float], int]] = {
    "linear": (_triangle, 1),
    "cubic": (_cubic, 2),
}


def _nearest(x: float, how: str) -> int:
    if how == "round_prefer_floor":
        return math.ceil(x - 0.5)
    if how == "round_prefer_ceil":
        return math.floor(x + 0.5)
    return math.floor(x) if how in ("floor", "simple") else math.ceil(x)


@lru_cache(maxsize=256)
def _weights(
    length: int,
    out: int,
    scale: float,
    mode: str,
    transform: str,
    start: float,
    end: float,
    how: str,
    a: float,
    exclude: bool,
    antialias: bool,
) -> tuple[list[list[int]], list[list[float]], list[bool]]:
    """Return for each element its neighbours, their weights, and whether it lies outside of the input."""
    places: list[list[int]] = []
    weights: list[list[float]] = []
    outside: list[bool] = []
    for x in range(out):
        source = _source(x, length, out, scale, transform, start, end)
        outside.append(transform == "tf_crop_and_resize" and not 0 <= source <= length - 1)
        if mode == "nearest":
            places.append([min(max(_nearest(source, how), 0), length - 1)])
            weights.append([1.0])
            continue
        kernel, reach = _KERNELS[mode]
        stretch = min(scale, 1.0) if antialias else 1.0
        first = math.floor(source - reach / stretch) + 1
        near = range(first, first + 2 * math.ceil(reach / stretch) + (stretch < 1))
        each = [kernel((n - source) * stretch, a) for n in near]
        if exclude:
            each = [w if 0 <= n < length else 0.0 for n, w in zip(near, each, strict=True)]
        total = sum(each) if exclude or antialias else 1.0
        places.append([min(max(n, 0), length - 1) for n in near])
        weights.append([w / total for w in each])
    return places, weights, outside


def resize(
    X: Tensor,
    roi: Sequence[float] | None = None,
    scales: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    dims = [axis % X.dim() for axis in axes] if axes else list(range(X.dim()))
    if sizes:
        factors = [size / X.shape[d] for size, d in zip(sizes, dims, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            choose = min if keep_aspect_ratio_policy == "not_larger" else max
            factors = [choose(factors)] * len(dims)
            sizes = [math.floor(f * X.shape[d] + 0.5) for f, d in zip(factors, dims, strict=True)]
    else:
        factors = list(scales or [])
        sizes = [math.floor(f * X.shape[d]) for f, d in zip(factors, dims, strict=True)]
    kind, result, beyond = X.dtype, X, None
    for i, (d, out, scale) in enumerate(zip(dims, sizes, factors, strict=True)):
        start, end = (roi[i], roi[i + len(dims)]) if roi else (0.0, 1.0)
        crop = coordinate_transformation_mode == "tf_crop_and_resize"
        if out == X.shape[d] and scale == 1 and (not crop or (start, end) == (0.0, 1.0)):
            continue
        places, weights, outside = _weights(
            X.shape[d], out, scale, mode, coordinate_transformation_mode, start, end,
            nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias),
        )  # fmt: skip
        result = _along(result, d, places, weights)
        if any(outside):
            shape = [1] * X.dim()
            shape[d] = out
            here = tensor(outside, device=X.device).reshape(shape)
            beyond = here if beyond is None else beyond | here
    if beyond is not None:
        result = ops.where(beyond, extrapolation_value, result)
    if result.dtype != kind:
        result = result if kind.is_floating_point else ops.round(result)
    return result.to(kind)


def _along(
    x: Tensor, dim: int, places: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]
) -> Tensor:
    """Return along a dimension the weighted sums of neighbours."""
    index = tensor(places, device=x.device)
    count = index.shape[1]
    if count == 1:
        return ops.index_select(x, dim, index[:, 0])
    if not x.dtype.is_floating_point:
        x = x.float()
    factors = tensor(weights, dtype=x.dtype, device=x.device)
    matrix = ops.zeros((len(places), x.shape[dim]), dtype=x.dtype, device=x.device)
    matrix = ops.scatter_add(matrix, 1, index, factors)
    return ops.movedim(ops.matmul(ops.movedim(x, dim, -1), matrix.T), -1, dim)


@operator("Resize", host=("scales",))
def resize_by_scale(X: Tensor, scales: Sequence[float], *, mode: str = "nearest") -> Tensor:
    """Before opset 11 an element's place was divided by the scale."""
    return _upsampled(X, scales, mode)


operator("Resize", since=11, host=("roi", "scales", "sizes"))(resize)


@operator("Upsample", host=("scales",))
def upsample(
    X: Tensor,
    scales: Sequence[float] | None = None,
    *,
    height_scale: float = 1.0,
    width_scale: float = 1.0,
    mode: str = "nearest",
) -> Tensor:
    return _upsampled(X, scales or [1.0, 1.0, height_scale, width_scale], mode)


def _upsampled(x: Tensor, scales: Sequence[float], mode: str) -> Tensor:
    options: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric"}
    mode = {"bilinear": "linear"}.get(mode, mode)
    return resize(x, None, scales, mode=mode, nearest_mode="floor", **options)
