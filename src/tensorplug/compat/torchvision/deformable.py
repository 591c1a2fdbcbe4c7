"""Deformable convolution."""

from __future__ import annotations

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite

from .rows import weighted_rows


@composite(name="torchvision.deform_conv2d", method=False)
def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """Return a convolution that samples at places of its own for each pixel (Dai et al. 2017, 2019).

    Parameters
    ----------
    input : Tensor
        (batch, channels, height, width).
    weight : Tensor
        (out_channels, channels / groups, kernel_height, kernel_width).
    offset : Tensor
        (batch, 2 · offset_groups · kernel_height · kernel_width, out_height, out_width): by how much each
        place is moved, first down, then to the right.
    mask : Tensor
        (batch, offset_groups · kernel_height · kernel_width, out_height, out_width): what the samples are
        multiplied by, with `use_mask`.
    bias : Tensor
        (out_channels,).
    stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups : int
        As of ``conv2d``.
    offset_groups : int
        How many groups of channels have offsets of their own.
    use_mask : bool
        Whether `mask` counts.

    Returns
    -------
    Tensor
        (batch, out_channels, out_height, out_width).

    Raises
    ------
    RuntimeError
        If the shapes do not fit.
    """
    batch, channels, height, width = input.shape
    out_channels, _, *kernel = weight.shape
    taps = kernel[0] * kernel[1]
    out = [
        (extent + 2 * pad - dilation * (size - 1) - 1) // stride + 1
        for extent, pad, dilation, size, stride in (
            (height, pad_h, dilation_h, kernel[0], stride_h),
            (width, pad_w, dilation_w, kernel[1], stride_w),
        )
    ]
    _check(input, weight, groups, offset_groups)
    _check_moves("offset", offset, (batch, 2 * offset_groups * taps, *out))
    if use_mask:
        _check_moves("mask", mask, (batch, offset_groups * taps, *out))

    def places(size: int, dilation: int, count: int, stride: int, pad: int) -> Tensor:
        """Return where each tap (rows) samples for each output (columns) if nothing is moved."""
        taps = tp.arange(size, dtype=offset.dtype, device=offset.device) * dilation
        return (
            taps.unsqueeze(1)
            + tp.arange(count, dtype=offset.dtype, device=offset.device) * stride
            - pad
        )

    moves = offset.reshape(batch, offset_groups, *kernel, 2, *out)
    rows = places(kernel[0], dilation_h, out[0], stride_h, pad_h)
    columns = places(kernel[1], dilation_w, out[1], stride_w, pad_w)
    y_index, y_weight = _corners(moves[:, :, :, :, 0] + rows[:, None, :, None], height)
    x_index, x_weight = _corners(moves[:, :, :, :, 1] + columns[None, :, None, :], width)
    # Of the four corners around each place; (batch, offset_groups, kernel, kernel, out, out, 2, 2).
    index = y_index.unsqueeze(-1) * width + x_index.unsqueeze(-2)
    shares = y_weight.unsqueeze(-1) * x_weight.unsqueeze(-2)
    if use_mask:
        shares = shares * mask.reshape(batch, offset_groups, *kernel, *out, 1, 1)
    images = tp.arange(batch * offset_groups, device=input.device) * (height * width)
    index = index + images.reshape(batch, offset_groups, *[1] * 6)

    pixels = input.reshape(batch * offset_groups, channels // offset_groups, height * width)
    pixels = pixels.transpose(1, 2).flatten(0, 1).contiguous()
    samples = weighted_rows(pixels, index.reshape(-1, 4), shares.reshape(-1, 4).to(input.dtype))
    # (batch, offset_groups, taps, places, channels of the group), so that channels come before taps.
    samples = samples.reshape(
        batch, offset_groups, taps, out[0] * out[1], channels // offset_groups
    )
    samples = samples.permute(0, 1, 4, 2, 3)
    samples = samples.reshape(batch, groups, channels // groups * taps, out[0] * out[1])
    result = weight.reshape(groups, out_channels // groups, -1) @ samples
    return result.reshape(batch, out_channels, *out) + bias.reshape(-1, 1, 1)


def _corners(at: Tensor, extent: int) -> tuple[Tensor, Tensor]:
    """Return the indices before and after places along an axis and their weights, 0 outside it."""
    low = at.detach().floor()
    share = at - low
    index = low.long()
    index = tp.stack([index, index + 1], -1)
    inside = (index >= 0) & (index < extent)
    return index.clamp(0, extent - 1), tp.stack([1 - share, share], -1) * inside


def _check(input: Tensor, weight: Tensor, groups: int, offset_groups: int) -> None:
    name = "deform_conv2d()"
    if input.ndim != 4 or weight.ndim != 4:
        raise RuntimeError(
            f"{name}: expected 4-d input and weight, got {list(input.shape)} and {list(weight.shape)}"
        )
    channels = input.shape[1]
    if weight.shape[1] * groups != channels or weight.shape[0] % groups:
        raise RuntimeError(
            f"{name}: a weight {list(weight.shape)} does not fit {channels} channels in {groups} groups"
        )
    if channels % offset_groups:
        raise RuntimeError(
            f"{name}: {channels} channels cannot be in {offset_groups} groups of offsets"
        )


def _check_moves(what: str, values: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(values.shape) != shape:
        raise RuntimeError(
            f"deform_conv2d(): expected {what} of shape {list(shape)}, got {list(values.shape)}"
        )


OPS = [deform_conv2d]
