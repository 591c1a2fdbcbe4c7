"""Images: rearranged channels, sampling along a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, int64
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import linspace, ones, stack, where
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.creation import tensor as make_tensor
from tensorplug.core.tensor.layout import contiguous_format
from tensorplug.core.tensor.shapes import as_shape

from ..ops._gradients import gradients
from ._common import tensor

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "grid_sample",
    "native_channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
]

Ints = int | Sequence[int]


def _canonical_pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    tensor(input, "pixel_shuffle")
    r = upscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} "
            "dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *_, channels, _, _ = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    return input, upscale_factor


@composite(rule=_canonical_pixel_shuffle, keeps_format=True, method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return (*, C r², H, W) rearranged as (*, C, H r, W r).

    Parameters
    ----------
    input : Tensor
        At least three dimensions.
    upscale_factor : int
        r.

    Raises
    ------
    RuntimeError
        If the channels are no multiple of r².

    Notes
    -----
    Shi et al., "Real-time single image and video super-resolution", 2016.
    """
    r = upscale_factor
    *leading, channels, h, w = input.shape
    n = len(leading)
    parts = input.reshape(*leading, channels // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    moved = parts.permute(order).clone(memory_format=contiguous_format)
    return moved.reshape(*leading, channels // (r * r), h * r, w * r)


def _canonical_pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    tensor(input, "pixel_unshuffle")
    r = downscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *_, h, w = input.shape
    if h % r or w % r:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but {h} or "
            f"{w} is not divisible by {r}"
        )
    return input, downscale_factor


@composite(rule=_canonical_pixel_unshuffle, keeps_format=True, method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return (*, C, H r, W r) rearranged as (*, C r², H, W): the inverse of :func:`pixel_shuffle`."""
    r = downscale_factor
    *leading, channels, h, w = input.shape
    n = len(leading)
    parts = input.reshape(*leading, channels, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    moved = parts.permute(order).clone(memory_format=contiguous_format)
    return moved.reshape(*leading, channels * r * r, h // r, w // r)


def _canonical_channel_shuffle(input: Any, groups: int) -> Any:
    tensor(input, "channel_shuffle")
    if input.ndim <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    channels = input._shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    return input, groups


@composite(
    rule=_canonical_channel_shuffle,
    keeps_format=True,
    aliases=("native_channel_shuffle",),
    method=False,
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return the channels of (N, C, *) in turn from each of `groups` groups (Zhang et al. 2017).

    Raises
    ------
    RuntimeError
        If the groups do not divide the channels.
    """
    n, channels, *size = input.shape
    parts = input.reshape(n, groups, channels // groups, *size)
    moved = parts.transpose(1, 2).clone(memory_format=contiguous_format)
    return moved.reshape(n, channels, *size)


native_channel_shuffle = channel_shuffle


def _canonical_affine_grid(
    theta: Any, size: Sequence[int], align_corners: bool | None = None
) -> Any:
    tensor(theta, "affine_grid", "theta")
    if theta.dtype.category != FLOATING:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = as_shape((tuple(size),), "affine_grid")
    count = len(sizes) - 2
    if count not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {list(size)}."
        )
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size "
            f"{list(size)}. Got {list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    if theta.shape[0] != sizes[0]:
        raise RuntimeError(
            f"affine_grid(): Expected size for first two dimensions of batch2 tensor to be: [{sizes[0]}, "
            f"{count + 1}] but got: [{theta.shape[0]}, {count + 1}]. theta has a matrix for each image of "
            "size"
        )
    return theta, sizes, bool(align_corners)


@composite(rule=_canonical_affine_grid, method=False)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return where an affine map takes each position of an image, for :func:`grid_sample`.

    Parameters
    ----------
    theta : Tensor
        (N, 2, 3) or (N, 3, 4).
    size : sequence of int
        (N, C, H, W) or (N, C, D, H, W) of the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Returns
    -------
    Tensor
        (N, H, W, 2) or (N, D, H, W, 3), the coordinates in the order x, y, z.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    RuntimeError
        If `theta` and `size` have different N.
    """
    extents = list(size[2:])
    count = len(extents)
    axes = []
    for dim, extent in enumerate(extents):
        axis = _centres(extent, bool(align_corners), theta)
        shape = [-1 if d == dim else 1 for d in range(count)]
        axes.append(axis.reshape(shape).expand(extents))
    one = ones(extents, dtype=theta.dtype, device=theta.device)
    base = stack([*reversed(axes), one], -1)
    flat = base.reshape(1, -1, count + 1) @ theta.transpose(1, 2)
    return flat.reshape(theta.shape[0], *extents, count)


def _centres(extent: int, align_corners: bool, like: Any) -> Any:
    if extent <= 1:
        return make_tensor([0.0], dtype=like.dtype, device=like.device)
    axis = linspace(-1, 1, extent, dtype=like.dtype, device=like.device)
    return axis if align_corners else axis * ((extent - 1) / extent)


def _canonical_grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    tensor(input, "grid_sample")
    tensor(grid, "grid_sample", "grid")
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
            f"got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    count = input.ndim - 2
    sizes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}"
        )
    if grid.shape[-1:] != (count,):
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {count} in last dimension, but got {sizes}"
        )
    if count not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {5 if grid.ndim == 5 else 4}D input and grid with same number of "
            f"dimensions, but got {sizes}"
        )
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} "
            f"and grid has {grid.dtype}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(input.shape)}"
        )
    if mode == "bicubic" and count != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return input, grid, mode, padding_mode, bool(align_corners)


@composite(rule=_canonical_grid_sample, method=False)
@in_float32
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return what `input` has at the positions of `grid`.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (N, C, D, H, W).
    grid : Tensor
        (N, *, 2) or (N, *, 3): x, y and z, each from -1 to 1 across the image.
    mode : {"bilinear", "nearest", "bicubic"}
        How to interpolate; "bilinear" is trilinear for volumes, "bicubic" is for images only.
    padding_mode : {"zeros", "border", "reflection"}
        What lies beyond the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Raises
    ------
    ValueError, RuntimeError
        If an option or a shape does not fit.

    Notes
    -----
    Jaderberg et al., "Spatial transformer networks", 2015.
    """
    return _sample(input, grid, mode, padding_mode, bool(align_corners))


def _check_sampler(g: Any, input: Any, grid: Any, *options: Any) -> None:
    _canonical_grid_sample(input, grid, *options)


@composite(
    shapes="g(N, C, *P), input(N, C, *S), grid(N, *P, D)",
    rule=_check_sampler,
    method=False,
    outputs="input, grid",
)
@in_float32
def grid_sampler_backward(
    g: Tensor, input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`grid_sample`'s image and grid.

    Parameters
    ----------
    g : Tensor
        (N, C, *): the gradient of what was sampled.
    input, grid, mode, padding_mode, align_corners
        As of :func:`grid_sample`.
    """
    of_image, of_grid = gradients(
        grid_sample, g, (input, grid, mode, padding_mode, align_corners), 0, 1
    )
    return of_image, of_grid


def _sample(input: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    sizes = list(input.shape[2:])
    count = len(sizes)
    # The grid's coordinates come in the order x, y, z: the last dimension first.
    indices = []
    for dim, size in enumerate(sizes):
        x = grid[..., count - 1 - dim]
        x = (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2
        if mode != "bicubic":
            x = _within(x, size, padding, align)
        indices.append(x)
    per_dim = [_taps(x, size, mode, padding, align) for x, size in zip(indices, sizes, strict=True)]
    result: Any = None
    for choice in range(len(per_dim[0]) ** count):
        index: Any = 0
        weight: Any = None
        for dim in range(count):
            choice, k = divmod(choice, len(per_dim[0]))
            at, factor = per_dim[dim][k]
            index = index * sizes[dim] + at
            weight = factor if weight is None else weight * factor
        part = _gathered(input, index) * weight.unsqueeze(1)
        result = part if result is None else result + part
    return result


def _within(x: Any, size: int, padding: str, align: bool) -> Any:
    """Return coordinates brought back into the image; for zero padding, as they are."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
        if span == 0:
            x = x * 0
        else:
            distance = (x - low).abs()
            flips = (distance / span).floor().detach()
            rest = distance - flips * span
            x = where(flips % 2 == 0, rest + low, span - rest + low)
    # At the edges, too, the slope is zero, as torch has it.
    inside = (x > 0).logical_and(x < size - 1)
    return where(inside, x, x.detach().clamp(0, size - 1))


def _taps(x: Any, size: int, mode: str, padding: str, align: bool) -> list[tuple[Any, Any]]:
    """Return the elements along one dimension that each position is made of, and their weights."""
    if mode == "nearest":
        near = x.round()  # its slope is zero, but there is one
        return [_tap(near, size, near * 0 + 1)]
    low = x.detach().floor()
    rest = x - low
    if mode == "bilinear":
        return [_tap(low, size, 1 - rest), _tap(low + 1, size, rest)]
    taps = []
    for k in (-1, 0, 1, 2):
        at = _within(low + k, size, padding, align)
        taps.append(_tap(at.round(), size, _keys((rest - k).abs(), k in (0, 1))))
    return taps


def _keys(x: Any, near: bool) -> Any:
    """Return Keys' cubic convolution kernel, as in interpolation."""
    a = -0.75
    if near:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a


def _tap(at: Any, size: int, weight: Any) -> tuple[Any, Any]:
    inside = (at >= 0).logical_and(at <= size - 1)
    return at.clamp(0, size - 1).nan_to_num(0.0).to(int64), where(inside, weight, 0.0)


def _gathered(input: Any, index: Any) -> Any:
    """Return (N, C, *positions) of the elements at flat places (N, *positions)."""
    n, c = input.shape[:2]
    where = index.shape[1:]
    flat = index.reshape(n, 1, math.prod(where)).expand(n, c, -1)
    return input.flatten(2).gather(2, flat).reshape(n, c, *where)


def _sampling_gradients(
    g: Any, input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool
) -> list[Any]:
    return list(grid_sampler_backward(g, input, grid, mode, padding_mode, align_corners))


DERIVATIVES = [
    derivative("grid_sample", joint={"input, grid": _sampling_gradients}),
    derivative("pixel_shuffle", input=lambda g, upscale_factor: pixel_unshuffle(g, upscale_factor)),
    derivative(
        "pixel_unshuffle", input=lambda g, downscale_factor: pixel_shuffle(g, downscale_factor)
    ),
    derivative(
        "channel_shuffle",
        input=lambda g, input_shape, groups: channel_shuffle(g, input_shape[1] // groups or 1),
    ),
]
