"""Convolutions and their like, with ONNX's ways to say padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.nn import functional as F

from ..registry import operator
from .matmul import integers

__all__: list[str] = []

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def padding_of(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
) -> list[tuple[int, int]]:
    """Return how much is added before and after each dimension."""
    count = len(sizes)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        result: list[tuple[int, int]] = []
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            less, more = total // 2, total - total // 2
            result.append((less, more) if auto_pad == "SAME_UPPER" else (more, less))
        return result
    if auto_pad == "VALID" or pads is None:
        return [(0, 0)] * count
    return [(pads[i], pads[i + count]) for i in range(count)]


def padded(x: Tensor, amounts: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Return the tensor with elements added around its last dimensions."""
    flat = [n for before_after in reversed(amounts) for n in before_after]
    return F.pad(x, flat, value=value) if any(flat) else x


def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    group: int,
    pads: Sequence[int] | None,
    auto_pad: str,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
) -> Tensor:
    kernel = weight.shape[2:]
    count = len(kernel)
    if count not in _CONV:
        raise NotImplementedError(f"convolutions over {count} dimensions")
    strides, dilations = strides or [1] * count, dilations or [1] * count
    amounts = padding_of(x.shape[2:], kernel, strides, dilations, pads, auto_pad)
    if all(before == after for before, after in amounts):
        padding = tuple(before for before, _ in amounts)
    else:
        x, padding = padded(x, amounts), (0,) * count
    return _CONV[count](x, weight, bias, tuple(strides), padding, tuple(dilations), group)


@operator("Conv")
def conv(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    return _conv(X, W, B, group, pads, auto_pad, strides, dilations)


@operator("ConvInteger")
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Add products of 8-bit numbers up, in float64, which holds them exactly."""
    signal = integers(x, x_zero_point).double()
    kernel = integers(w, None).double()
    if w_zero_point is not None:
        kernel = kernel - w_zero_point.double().reshape((-1,) + (1,) * (w.dim() - 1))
    return _conv(signal, kernel, None, group, pads, auto_pad, strides, dilations).int()


@operator("ConvTranspose")
def conv_transpose(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    kernel = W.shape[2:]
    count = len(kernel)
    strides, dilations = strides or [1] * count, dilations or [1] * count
    extra = list(output_padding or [0] * count)
    full = [
        (n - 1) * s + (k - 1) * d + 1
        for n, k, s, d in zip(X.shape[2:], kernel, strides, dilations, strict=True)
    ]
    wanted: Sequence[int] | None = output_shape
    if wanted is None and auto_pad.startswith("SAME"):
        wanted = [n * s for n, s in zip(X.shape[2:], strides, strict=True)]
    if wanted is not None:
        cut: list[tuple[int, int]] = []
        for size, more, target in zip(full, extra, wanted, strict=True):
            total = size + more - target
            less = int(total / 2)
            cut.append((less, total - less) if auto_pad != "SAME_LOWER" else (total - less, less))
    else:
        cut = padding_of(X.shape[2:], kernel, strides, dilations, pads, auto_pad)
    fits = all(
        before == after and before >= 0 and (more < max(s, d))
        for (before, after), more, s, d in zip(cut, extra, strides, dilations, strict=True)
    )
    if fits:
        padding = tuple(before for before, _ in cut)
        return _TRANSPOSED[count](
            X, W, B, tuple(strides), padding, tuple(extra), group, tuple(dilations)
        )
    result = _TRANSPOSED[count](X, W, B, tuple(strides), 0, 0, group, tuple(dilations))
    outside = [(-before, more - after) for (before, after), more in zip(cut, extra, strict=True)]
    return _resized(result, outside, B)


def _resized(x: Tensor, amounts: Sequence[tuple[int, int]], bias: Tensor | None) -> Tensor:
    """Cut off elements where amounts are negative, add such that no product reached where positive."""
    for i, (before, after) in enumerate(amounts):
        dim = i + 2
        kept = x.shape[dim] + min(before, 0) + min(after, 0)
        x = ops.narrow(x, dim, max(-before, 0), kept)
        for count, first in ((before, True), (after, False)):
            if count > 0:
                shape = list(x.shape)
                shape[dim] = count
                more = ops.zeros(tuple(shape), dtype=x.dtype, device=x.device)
                if bias is not None:
                    more = more + bias.reshape((-1,) + (1,) * (x.dim() - 2))
                x = ops.cat([more, x] if first else [x, more], dim)
    return x


@operator("Col2Im", host=("image_shape", "block_shape"))
def col2im(
    input: Tensor,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Add blocks up in an image: a transposed convolution with kernels of a single one."""
    count = len(image_shape)
    strides, dilations = strides or [1] * count, dilations or [1] * count
    amounts = padding_of(image_shape, block_shape, strides, dilations, pads, "NOTSET")
    n, channels_blocks, _ = input.shape
    size = 1
    for k in block_shape:
        size *= k
    channels = channels_blocks // size
    result = ops.zeros(
        (n, channels, *(s + b + a for s, (b, a) in zip(image_shape, amounts, strict=True))),
        dtype=input.dtype,
        device=input.device,
    )
    counts = [
        (result.shape[i + 2] - (block_shape[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(count)
    ]
    blocks = input.reshape(n, channels, size, *counts)
    for index in range(size):
        rest, keys = index, []
        for i in reversed(range(count)):
            rest, offset = divmod(rest, block_shape[i])
            first = offset * dilations[i]
            keys.append(slice(first, first + (counts[i] - 1) * strides[i] + 1, strides[i]))
        places: tuple[Any, ...] = (slice(None), slice(None), *reversed(keys))
        one = ops.zeros_like(result)
        one[places] = blocks[:, :, index]
        result = result + one
    for i, (before, _) in enumerate(amounts):
        result = ops.narrow(result, i + 2, before, image_shape[i])
    return result


@operator("DeformConv")
def deform_conv(
    X: Tensor,
    W: Tensor,
    offset: Tensor,
    B: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Sample the image where each kernel element is moved to, then multiply by the weights."""
    if X.dim() != 4:
        raise NotImplementedError("deformable convolutions of other than images")
    (sy, sx), (dy, dx) = strides or (1, 1), dilations or (1, 1)
    pads = pads or [0, 0, 0, 0]
    n, c, h, w = X.shape
    kh, kw = W.shape[2:]
    oh, ow = offset.shape[2:]
    kind: dict[str, Any] = {"dtype": X.dtype, "device": X.device}
    moved = offset.reshape(n, offset_group, kh * kw, 2, oh, ow)
    ky = (ops.arange(kh, **kind) * dy).repeat_interleave(kw)[:, None, None]
    kx = (ops.arange(kw, **kind) * dx).repeat(kh)[:, None, None]
    y = moved[:, :, :, 0] + ky + (ops.arange(oh, **kind) * sy - pads[0])[:, None]
    x = moved[:, :, :, 1] + kx + (ops.arange(ow, **kind) * sx - pads[1])
    image = X.reshape(n, offset_group, c // offset_group, h * w)
    sampled = _bilinear(image, y, x, h, w)
    if mask is not None:
        sampled = sampled * mask.reshape(n, offset_group, 1, kh * kw, oh, ow)
    rows = sampled.reshape(n, group, c // group * kh * kw, oh * ow)
    weight = W.reshape(group, W.shape[0] // group, -1)
    result = ops.matmul(weight, rows).reshape(n, W.shape[0], oh, ow)
    return result if B is None else result + B[:, None, None]


def _bilinear(image: Tensor, y: Tensor, x: Tensor, h: int, w: int) -> Tensor:
    """Return elements between those of flattened images, zeros outside of them."""
    top, left = ops.floor(y), ops.floor(x)
    result = ops.zeros((*image.shape[:3], *y.shape[2:]), dtype=image.dtype, device=image.device)
    for row, by in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, bx in ((left, 1 - (x - left)), (left + 1, x - left)):
            inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
            place = ops.clamp(row, 0, h - 1).long() * w + ops.clamp(column, 0, w - 1).long()
            flat = place.flatten(2)[:, :, None].expand(-1, -1, image.shape[2], -1)
            picked = ops.gather(image, 3, flat).reshape(*image.shape[:3], *y.shape[2:])
            result = result + picked * (by * bx * inside)[:, :, None]
    return result
