"""Pooling of regions of interest: the maximum of bins of pixels, the mean of bins, or of sampled points."""

from __future__ import annotations

from collections.abc import Callable

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite

from .rows import axis_weights, weighted_rows

#: How many numbers are gathered at a time.
GATHERED = 1 << 24


@composite(name="torchvision.roi_align", method=False)
def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Return the mean of points sampled in each bin of each region (He et al. 2017).

    Parameters
    ----------
    input : Tensor
        (batch, channels, height, width).
    rois : Tensor
        (regions, 5): ``(image, x1, y1, x2, y2)``. No gradient flows to them.
    spatial_scale : float
        What the coordinates are multiplied by.
    pooled_height, pooled_width : int
        How many bins a region has.
    sampling_ratio : int
        How many points a bin has along each axis; with 0 or less as many as a bin has pixels.
    aligned : bool
        Whether pixel centers are at halves, and regions may be smaller than a pixel.

    Returns
    -------
    Tensor
        (regions, channels, pooled_height, pooled_width).
    """
    _check("roi_align()", input, rois)
    starts, extents = _regions(rois, spatial_scale, 0.5 if aligned else 0.0)
    if not aligned:
        extents = extents.clamp(min=1)

    def pool(part: Tensor) -> Tensor:
        bins = (pooled_height, pooled_width)
        index, weight = _points(
            input, rois[part, 0], starts[part], extents[part], bins, sampling_ratio, 1
        )
        result = weighted_rows(_pixels(input), index.flatten(0, 2), weight.flatten(0, 2))
        return result.reshape(*index.shape[:3], input.shape[1]).permute(0, 3, 1, 2)

    points = _most_points(extents, (pooled_height, pooled_width), sampling_ratio)
    return _in_parts(
        pool, len(rois), 4 * points, (input.shape[1], pooled_height, pooled_width), input
    )


@composite(name="torchvision.ps_roi_align", outputs="output, channel_mapping", method=False)
def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """Return the mean of points sampled in each bin, each bin from channels of its own (Li et al. 2017).

    Parameters
    ----------
    input : Tensor
        (batch, channels · pooled_height · pooled_width, height, width).
    rois, spatial_scale, pooled_height, pooled_width, sampling_ratio
        As of ``roi_align``.

    Returns
    -------
    output : Tensor
        (regions, channels, pooled_height, pooled_width).
    channel_mapping : Tensor
        Of the same shape, int32: the channel that each value came from.
    """
    _check("ps_roi_align()", input, rois)
    bins = (pooled_height, pooled_width)
    channels = _channels_of_bins(input, bins)
    starts, extents = _regions(rois, spatial_scale, 0.5)

    def pool(part: Tensor) -> Tensor:
        index, weight = _points(
            input, rois[part, 0], starts[part], extents[part], bins, sampling_ratio, 0
        )
        return _of_own_channels(input, index, weight, channels)

    points = _most_points(extents, bins, sampling_ratio)
    result = _in_parts(pool, len(rois), 4 * points, tuple(channels.shape), input)
    return result, channels.to(tp.int32).expand(len(rois), -1, -1, -1).contiguous()


@composite(name="torchvision.roi_pool", outputs="output, argmax", method=False)
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each bin of each region (Girshick 2015).

    Parameters
    ----------
    input, rois, spatial_scale, pooled_height, pooled_width
        As of ``roi_align``.

    Returns
    -------
    output : Tensor
        (regions, channels, pooled_height, pooled_width); 0 where a bin has no pixel.
    argmax : Tensor
        Of the same shape, int32: which pixel of the image it was, -1 where there is none.
    """
    _check("roi_pool()", input, rois)
    bins = (pooled_height, pooled_width)
    starts, stops = _pixel_regions(rois, spatial_scale)
    begin, end = _pixel_bins(starts, stops - starts + 1, bins, input, 0)

    def pool(part: Tensor) -> tuple[Tensor, Tensor]:
        index, inside = _bin_pixels([b[part] for b in begin], [e[part] for e in end], input)
        image = rois[part, 0].long().reshape(-1, 1, 1, 1) * (input.shape[2] * input.shape[3])
        values = _pixels(input)[index + image]  # (regions, height, width, pixels, channels)
        values = values.masked_fill(~inside.unsqueeze(-1), -float("inf"))
        best, which = values.max(3)
        where = index.unsqueeze(-1).expand(values.shape).gather(3, which.unsqueeze(3)).squeeze(3)
        empty = ~inside.any(3, keepdim=True)
        return (
            best.masked_fill(empty, 0).permute(0, 3, 1, 2),
            where.masked_fill(empty, -1).permute(0, 3, 1, 2).to(tp.int32),
        )

    shape = (input.shape[1], *bins)
    if not len(rois):
        return input.new_zeros(0, *shape), input.new_zeros(0, *shape, dtype=tp.int32)
    parts = [pool(part) for part in _parts(len(rois), _most_pixels(begin, end), shape, input)]
    return tp.cat([best for best, _ in parts]), tp.cat([where for _, where in parts])


@composite(name="torchvision.ps_roi_pool", outputs="output, channel_mapping", method=False)
def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Return the mean of each bin of each region, each bin from channels of its own (Dai et al. 2016).

    Parameters
    ----------
    input, rois, spatial_scale, pooled_height, pooled_width
        As of ``ps_roi_align``.

    Returns
    -------
    output : Tensor
        (regions, channels, pooled_height, pooled_width); 0 where a bin has no pixel.
    channel_mapping : Tensor
        Of the same shape, int32: the channel that each value came from.

    Notes
    -----
    As torchvision's, it leaves out the last row and the last column of the image.
    """
    _check("ps_roi_pool()", input, rois)
    bins = (pooled_height, pooled_width)
    channels = _channels_of_bins(input, bins)
    starts, stops = _pixel_regions(rois, spatial_scale)
    begin, end = _pixel_bins(starts, stops - starts, bins, input, 1)

    def pool(part: Tensor) -> Tensor:
        index, inside = _bin_pixels([b[part] for b in begin], [e[part] for e in end], input)
        index = index + rois[part, 0].long().reshape(-1, 1, 1, 1) * (
            input.shape[2] * input.shape[3]
        )
        weight = inside.to(input.dtype) / inside.sum(3, keepdim=True).clamp(min=1).to(input.dtype)
        return _of_own_channels(input, index, weight, channels)

    result = _in_parts(pool, len(rois), _most_pixels(begin, end), tuple(channels.shape), input)
    return result, channels.to(tp.int32).expand(len(rois), -1, -1, -1).contiguous()


def _check(name: str, input: Tensor, rois: Tensor) -> None:
    if input.ndim != 4:
        raise RuntimeError(f"{name}: expected an input of 4 dimensions, got {list(input.shape)}")
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"{name}: rois must have shape as Tensor[K, 5], got {list(rois.shape)}")
    if input.dtype is not rois.dtype:
        raise RuntimeError(
            f"{name}: expected input and rois of one dtype, got {input.dtype} and {rois.dtype}"
        )


def _channels_of_bins(input: Tensor, bins: tuple[int, int]) -> Tensor:
    """Return (channels, height, width): which channel of the input each value of the output is from."""
    if input.shape[1] % (bins[0] * bins[1]):
        raise RuntimeError(
            "input channels must be a multiple of pooling height * pooling width, got "
            f"{input.shape[1]} channels for {bins[0]} x {bins[1]} bins"
        )
    return tp.arange(input.shape[1], device=input.device).reshape(-1, *bins)


def _pixels(input: Tensor) -> Tensor:
    """Return (batch · height · width, channels)."""
    return input.permute(0, 2, 3, 1).reshape(-1, input.shape[1])


def _of_own_channels(input: Tensor, index: Tensor, weight: Tensor, channels: Tensor) -> Tensor:
    """Return (regions, *channels.shape): weighted sums of pixels, each of its own channel.

    Index and weight are (regions, height, width, terms), of pixels.
    """
    values = input.permute(0, 2, 3, 1).reshape(-1, 1)
    index = index.unsqueeze(1) * input.shape[1] + channels.unsqueeze(-1)
    weight = weight.unsqueeze(1).expand(index.shape)
    return weighted_rows(values, index.flatten(0, 3), weight.flatten(0, 3)).reshape(index.shape[:4])


def _parts(regions: int, terms: int, shape: tuple[int, ...], input: Tensor) -> tuple[Tensor, ...]:
    """Return the numbers of the regions in parts: of so many that what is gathered for one stays small."""
    numbers = max(1, terms) * shape[0] * shape[1] * shape[2]
    return tp.arange(regions, device=input.device).split(max(1, GATHERED // numbers))


def _in_parts(
    pool: Callable[[Tensor], Tensor],
    regions: int,
    terms: int,
    shape: tuple[int, ...],
    input: Tensor,
) -> Tensor:
    if not regions:
        return input.new_zeros(0, *shape)
    return tp.cat([pool(part) for part in _parts(regions, terms, shape, input)])


# --- sampled points ------------------------------------------------------------------------------


def _regions(rois: Tensor, scale: float, offset: float) -> tuple[Tensor, Tensor]:
    """Return (regions, 2) each: where regions start, and how large they are, down and to the right."""
    corners = rois.detach()[:, 1:] * scale - offset
    starts, stops = corners[:, :2].flip(1), corners[:, 2:].flip(1)
    return starts, stops - starts


def _counts(extents: Tensor, bins: tuple[int, int], ratio: int) -> Tensor:
    """Return (regions, 2), int64: how many points a bin of each region has along each axis."""
    if ratio > 0:
        return tp.full(extents.shape, ratio, device=extents.device)
    return (extents / extents.new_tensor(bins)).ceil().long().clamp(min=0)


def _most_points(extents: Tensor, bins: tuple[int, int], ratio: int) -> int:
    if not len(extents):
        return 0
    high, wide = _counts(extents, bins, ratio).amax(0).tolist()
    return high * wide


def _points(
    input: Tensor,
    images: Tensor,
    starts: Tensor,
    extents: Tensor,
    bins: tuple[int, int],
    ratio: int,
    least: int,
) -> tuple[Tensor, Tensor]:
    """Return (regions, height, width, terms) each: the pixels around the points of each bin, and weights.

    Regions whose bins have fewer points than others have weights of 0 at the end. The sums are divided by the
    number of points, but at least by `least`.
    """
    counts = _counts(extents, bins, ratio)
    axes = []
    for axis, extent in enumerate(input.shape[2:]):
        count = counts[:, axis].reshape(-1, 1, 1)
        size = (extents[:, axis] / bins[axis]).reshape(-1, 1, 1)
        numbers = tp.arange(bins[axis], device=input.device).reshape(1, -1, 1)
        steps = tp.arange(int(count.max()), device=input.device)
        at = (starts[:, axis].reshape(-1, 1, 1) + numbers * size) + (steps + 0.5).to(
            size.dtype
        ) * size / count
        index, weight = axis_weights(at, extent)
        weight = weight * (steps < count).unsqueeze(-1)
        axes.append((index.flatten(2), weight.flatten(2)))
    (rows, row_weight), (columns, column_weight) = axes
    image = images.long().reshape(-1, 1, 1) * input.shape[2]
    index = (rows + image)[:, :, None, :, None] * input.shape[3] + columns[:, None, :, None, :]
    weight = row_weight[:, :, None, :, None] * column_weight[:, None, :, None, :]
    total = counts.prod(1).clamp(min=least).to(weight.dtype)
    return index.flatten(3), weight.flatten(3) / total.reshape(-1, 1, 1, 1)


# --- bins of pixels ------------------------------------------------------------------------------


def _pixel_regions(rois: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return (regions, 2) each, int64: the first and the last pixel of regions, down and to the right."""
    corners = rois.detach()[:, 1:] * scale
    corners = (
        (corners.abs() + 0.5).floor() * corners.sign()
    ).long()  # halves away from 0, as C's round
    return corners[:, :2].flip(1), corners[:, 2:].flip(1)


def _pixel_bins(
    starts: Tensor, extents: Tensor, bins: tuple[int, int], input: Tensor, margin: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Return for each axis (regions, bins) each, int64: where bins begin, and where they end."""
    begin, end = [], []
    for axis, extent in enumerate(input.shape[2:]):
        size = extents[:, axis : axis + 1].clamp(min=1).to(input.dtype) / bins[axis]
        numbers = tp.arange(bins[axis], device=input.device)
        start = starts[:, axis : axis + 1]
        begin.append(((numbers * size).floor().long() + start).clamp(0, extent - margin))
        end.append((((numbers + 1) * size).ceil().long() + start).clamp(0, extent - margin))
    return begin, end


def _most_pixels(begin: list[Tensor], end: list[Tensor]) -> int:
    if not begin[0].numel():
        return 0
    high, wide = [int((last - first).max()) for first, last in zip(begin, end, strict=True)]
    return max(1, high) * max(1, wide)


def _bin_pixels(begin: list[Tensor], end: list[Tensor], input: Tensor) -> tuple[Tensor, Tensor]:
    """Return (regions, height, width, pixels) each: the pixels of bins, and which of them are in the bin.

    Bins with fewer pixels than others have some that are not; pixels are in the order of rows.
    """
    axes = []
    for first, last, extent in zip(begin, end, input.shape[2:], strict=True):
        steps = tp.arange(max(1, int((last - first).max())), device=input.device)
        pixel = first.unsqueeze(-1) + steps
        axes.append((pixel.clamp(max=extent - 1), pixel < last.unsqueeze(-1)))
    (rows, row_inside), (columns, column_inside) = axes
    index = rows[:, :, None, :, None] * input.shape[3] + columns[:, None, :, None, :]
    inside = row_inside[:, :, None, :, None] & column_inside[:, None, :, None, :]
    return index.flatten(3), inside.flatten(3)


OPS = [roi_align, ps_roi_align, roi_pool, ps_roi_pool]
