"""Resampling to another size."""

from __future__ import annotations

import math
import struct
import warnings
from collections.abc import Sequence
from operator import index
from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, bfloat16, float16, float32, int64, uint8
from tensorplug.core.dispatch.op_registry import composite, defined_by
from tensorplug.core.ops import zeros
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.creation import tensor as make_tensor
from tensorplug.core.tensor.shapes import Shape

from ..ops._gradients import gradients
from ._common import check_room, tensor
from .pooling.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# Of each mode: for how many spatial dimensions it is.
_DIMENSIONS = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}


def _canonical_interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    tensor(input, "interpolate")
    count = input.ndim - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    sizes, scales = _sizes(input, size, scale_factor, count, recompute_scale_factor)
    if antialias and (mode not in ("bilinear", "bicubic") or count != 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as "
            "input"
        )
    if mode not in _DIMENSIONS or count not in _DIMENSIONS[mode]:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | "
            f"nearest-exact (got {mode})"
        )
    if mode != "area" and (min(sizes) <= 0 or 0 in input._shape[1:]):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(input.shape)} and "
            f"output {sizes}"
        )
    check_room(sizes, "interpolate")
    smooth = mode not in ("nearest", "nearest-exact")
    of_images = mode in ("bilinear", "bicubic") and input.dtype is uint8
    if smooth and input.dtype.category != FLOATING and not of_images:
        raise NotImplementedError(
            f"interpolate(): mode {mode!r} is not implemented for {input.dtype}"
        )
    if scales[0] is not None:
        return input, None, tuple(scales), mode, align_corners, antialias
    return input, tuple(sizes), None, mode, align_corners, antialias


@composite(
    "input, size, scale_factor, mode, align_corners, antialias",
    rule=_canonical_interpolate,
    keeps_format=True,
    method=False,
)
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return `input` resampled to another spatial size.

    Parameters
    ----------
    input : Tensor
        (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    size : int or sequence of int, optional
        The spatial size of the result. Either this or `scale_factor`.
    scale_factor : float or sequence of float, optional
        The result's size over the input's.
    mode : str
        "nearest", "nearest-exact", "linear" (3D input), "bilinear" and "bicubic" (4D), "trilinear" (5D),
        "area".
    align_corners : bool, optional
        Whether the centres, rather than the edges, of the outermost elements stay where they are; for the
        linear and cubic modes.
    recompute_scale_factor : bool, optional
        Whether positions follow from the sizes, rather than from `scale_factor`.
    antialias : bool
        Whether scaling down widens the filter; for "bilinear" and "bicubic".

    Raises
    ------
    ValueError, NotImplementedError
        If the options or the number of dimensions do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> interpolate(tp.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> interpolate(tp.tensor([[[1.0, 2.0]]]), size=3, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.5000, 2.0000]]])
    """
    sizes, scales = _sizes(input, size, scale_factor, input.ndim - 2, None)
    if mode == "area":
        area: Any = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        result: Tensor = area[len(sizes) - 1](input, tuple(sizes))
        return result
    resampled: Tensor = _resample(input, sizes, scales, mode, bool(align_corners), antialias)
    return resampled


def _check_gradient(
    grad_output: Any, input_size: Shape, size: Any, scale_factor: Any, mode: str, *options: Any
) -> None:
    count = len(input_size) - 2
    input_size = tuple([index(n) for n in input_size])
    known = mode in _DIMENSIONS and count in _DIMENSIONS[mode] and min(input_size[1:]) > 0
    wanted = size
    if known and size is None:
        wanted = [math.floor(n * f) for n, f in zip(input_size[2:], scale_factor, strict=True)]
    fits = known and len(wanted) == count and min(wanted) > 0
    if not fits or grad_output._shape != (*input_size[:2], *wanted):
        raise RuntimeError(
            f"interpolate_backward(): a gradient {list(grad_output.shape)} is not of images of shape "
            f"{list(input_size)} resampled by mode {mode!r} to {size or scale_factor}"
        )


@composite(shapes="grad_output(N, C, *P)", rule=_check_gradient, method=False)
@in_float32
def interpolate_backward(
    grad_output: Tensor,
    input_size: Shape,
    size: Shape | None,
    scale_factor: tuple[float, ...] | None,
    mode: str,
    align_corners: bool | None,
    antialias: bool,
) -> Tensor:
    """Return the gradient of :func:`interpolate`'s images.

    Parameters
    ----------
    grad_output : Tensor
        (N, C, *): the gradient of what was resampled.
    input_size : tuple of int
        (N, C, *spatial), of the images.
    size, scale_factor, mode, align_corners, antialias
        As of :func:`interpolate`, the sizes and the factors one per dimension.
    """
    images = zeros(*input_size, dtype=grad_output.dtype, device=grad_output.device)
    options = (size, scale_factor, mode, align_corners, antialias)
    result: Tensor = gradients(interpolate, grad_output, (images, *options), 0)[0]
    return result


def _sizes(
    input: Tensor, size: Any, scale_factor: Any, count: int, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """Return the output's size, and the scale that counts where it was given as such."""
    if not 1 <= count <= 3:
        raise NotImplementedError(
            f"interpolate(): only 3D, 4D and 5D input tensors are supported, got {count + 2}D"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * count
        if len(sizes) != count:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with "
                f"spatial dimensions of {list(input.shape[2:])} and output size of {size}"
            )
        for item in sizes:
            real = isinstance(item, Tensor) and item.is_floating_point()
            if real or isinstance(item, bool) or not hasattr(item, "__index__"):
                raise TypeError(
                    "interpolate(): expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                    "Tuple[int, int, int], but got size with types "
                    f"{[type(item) for item in sizes]}"
                )
        return [int(item) for item in sizes], [None] * count
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = (
        list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count
    )
    if len(factors) != count:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}"
        )
    for factor in factors:
        if not isinstance(factor, (int, float)):
            raise TypeError(
                "interpolate(): argument 'scale_factor' must be float or tuple of floats, not "
                f"{type(factor).__name__}"
            )
    wanted = [
        math.floor(float(length) * factor)
        for length, factor in zip(input.shape[2:], factors, strict=True)
    ]
    return wanted, [None] * count if recompute else [float(factor) for factor in factors]


def _resample(
    input: Any,
    sizes: list[int],
    scales: list[float | None],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Any:
    dtype = input.dtype
    half = dtype is float16 or dtype is bfloat16
    smooth = mode not in ("nearest", "nearest-exact")
    x = input.to(float32) if smooth and (half or dtype is uint8) else input
    steps = list(enumerate(zip(sizes, scales, strict=True), start=2))
    # Of bytes, torch makes bytes again after each dimension, the last one first.
    in_bytes = smooth and dtype is uint8
    for dim, (wanted, scale) in reversed(steps) if in_bytes else steps:
        length = x.shape[dim]
        if mode in ("nearest", "nearest-exact"):
            indices = _nearest(length, wanted, scale, mode == "nearest-exact")
            if indices != list(range(length)):
                x = x.index_select(dim, make_tensor(indices, dtype=int64, device=x.device))
            continue
        taps = _taps(length, wanted, scale, mode, align_corners, antialias)
        x = _combined(x, dim, _in_16_bits(taps) if in_bytes else taps)
        if in_bytes:
            x = (x + 0.5).floor().clamp(0, 255)
    return x.contiguous() if x.dtype is dtype else x.to(dtype)


def _single(x: float) -> float:
    """Return `x` rounded to single precision."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def _nearest(length: int, wanted: int, scale: float | None, exact: bool) -> list[int]:
    """Return which element each one of the result is; torch computes this in single precision."""
    if wanted == length:
        return list(range(length))
    if wanted == 2 * length and not exact:
        return [i >> 1 for i in range(wanted)]
    step = _single(1.0 / scale) if scale else _single(_single(length) / _single(wanted))
    half = 0.5 if exact else 0.0
    return [min(math.floor(_single((i + half) * step)), length - 1) for i in range(wanted)]


Taps = list[list[tuple[int, float]]]


def _taps(
    length: int,
    wanted: int,
    scale: float | None,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Taps:
    """Return, for each element of the result, which ones of the input it is made of, and their weights."""
    if align_corners:
        step = (length - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1.0 / scale if scale else length / wanted
    cubic = mode == "bicubic"
    if antialias:
        return _wide_taps(length, wanted, step, cubic)
    result: Taps = []
    for i in range(wanted):
        index = step * i if align_corners else step * (i + 0.5) - 0.5
        if not cubic:
            index = max(index, 0.0)
            first = min(int(index), length - 1)
            rest = min(max(index - first, 0.0), 1.0)
            second = min(first + 1, length - 1)
            result.append([(first, 1 - rest), (second, rest)])
            continue
        first = math.floor(index)
        rest = min(max(index - first, 0.0), 1.0)
        result.append(
            [
                (min(max(first + k, 0), length - 1), _cubic(abs(rest - k), -0.75))
                for k in (-1, 0, 1, 2)
            ]
        )
    return result


def _cubic(x: float, a: float) -> float:
    """Return Keys' cubic convolution kernel at a distance (Keys 1981)."""
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    if x < 2:
        return (((x - 5) * x + 8) * x - 4) * a
    return 0.0


def _in_16_bits(taps: Taps) -> Taps:
    """Return the weights rounded to the multiples of a power of 2 that torch has for bytes, in int16."""
    merged = [_together(terms) for terms in taps]
    largest = max(weight for terms in merged for _, weight in terms)
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    unit = 1 << bits
    return [
        [(at, int(weight * unit + math.copysign(0.5, weight)) / unit) for at, weight in terms]
        for terms in merged
    ]


def _together(terms: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return terms of which each has the weights of all for its element, or 0 if another has."""
    sums: dict[int, float] = {}
    for at, weight in terms:
        sums[at] = sums.get(at, 0.0) + weight
    return [(at, sums.pop(at, 0.0)) for at, _ in terms]


def _wide_taps(length: int, wanted: int, step: float, cubic: bool) -> Taps:
    """Return the taps of a filter as wide as the step (Pillow's way, as in torch)."""
    reach = (2.0 if cubic else 1.0) * max(step, 1.0)
    inverse = 1.0 / step if step >= 1.0 else 1.0
    rows = []
    for i in range(wanted):
        centre = step * (i + 0.5)
        low = max(int(centre - reach + 0.5), 0)
        high = min(int(centre + reach + 0.5), length)
        weights = []
        for j in range(low, high):
            x = abs((j - centre + 0.5) * inverse)
            weights.append(_cubic(x, -0.5) if cubic else max(1.0 - x, 0.0))
        total = sum(weights) or 1.0
        rows.append([(j, w / total) for j, w in zip(range(low, high), weights, strict=True)])
    most = max(len(row) for row in rows)
    return [row + [(0, 0.0)] * (most - len(row)) for row in rows]


def _combined(x: Any, dim: int, taps: Taps) -> Any:
    """Return the weighted sums of elements along `dim`."""
    result: Any = None
    shape = [-1] + [1] * (x.ndim - dim - 1)
    for k in range(len(taps[0])):
        indices = make_tensor([row[k][0] for row in taps], dtype=int64, device=x.device)
        weights = make_tensor([row[k][1] for row in taps], dtype=x.dtype, device=x.device)
        part = x.index_select(dim, indices) * weights.reshape(shape)
        result = part if result is None else result + part
    return result


@defined_by(interpolate)
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return :func:`interpolate`; deprecated."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@defined_by(interpolate)
def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return :func:`interpolate` with mode "nearest"; deprecated."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@defined_by(interpolate)
def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return :func:`interpolate` with mode "bilinear" and aligned corners; deprecated."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        UserWarning,
        stacklevel=3,
    )


DERIVATIVES = [
    derivative(
        "interpolate",
        input=lambda g, input_shape, size, scale_factor, mode, align_corners, antialias: (
            interpolate_backward(
                g, tuple(input_shape), size, scale_factor, mode, align_corners, antialias
            )
        ),
    ),
    derivative(
        "interpolate_backward",
        grad_output=lambda g, size, scale_factor, mode, align_corners, antialias: interpolate(
            g, size, scale_factor, mode, align_corners, antialias=antialias
        ),
    ),
]
