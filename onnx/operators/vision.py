"""Sampling of images: grids, regions of interest, boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import functional as F

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@operator("GridSample")
def grid_sample(
    X: Tensor,
    grid: Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    return F.grid_sample(X, grid, _MODES.get(mode, mode), padding_mode, bool(align_corners))


@operator("AffineGrid", host=("size",))
def affine_grid(theta: Tensor, size: Sequence[int], *, align_corners: int = 0) -> Tensor:
    return F.affine_grid(theta, list(size), bool(align_corners))


def _regions(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    size: tuple[int, int],
    ratio: int,
    scale: float,
    half: float,
    mode: str,
) -> Tensor:
    """Return the average or the largest of bilinear samples in each part of each region."""
    h, w = x.shape[2:]
    results: list[Tensor] = []
    for roi, image in zip((rois * scale - half).tolist(), batch.tolist(), strict=True):
        x1, y1, x2, y2 = roi
        width, height = x2 - x1, y2 - y1
        if not half:
            width, height = max(width, 1.0), max(height, 1.0)
        across, down = width / size[1], height / size[0]
        nx = ratio if ratio > 0 else max(-int(-across // 1), 1)
        ny = ratio if ratio > 0 else max(-int(-down // 1), 1)
        kind: dict[str, Any] = {"dtype": x.dtype, "device": x.device}
        ys = (ops.arange(size[0] * ny, **kind) + 0.5) * (down / ny) + y1
        xs = (ops.arange(size[1] * nx, **kind) + 0.5) * (across / nx) + x1
        rows, columns = _line(ys, h), _line(xs, w)
        picture = x[image]
        parts = [
            picture[:, yi][:, :, xi] * (yw[:, None] * xw) for yi, yw in rows for xi, xw in columns
        ]
        blocks = [part.reshape(-1, size[0], ny, size[1], nx) for part in parts]
        if mode == "max":  # ONNX takes the largest of the four weighted neighbours of all samples
            each = [ops.amax(block, (2, 4)) for block in blocks]
            results.append(ops.amax(ops.stack(each), 0))
        else:
            results.append(ops.mean(blocks[0] + blocks[1] + blocks[2] + blocks[3], (2, 4)))
    if not results:
        return ops.zeros((0, x.shape[1], *size), dtype=x.dtype, device=x.device)
    return ops.stack(results)


def _line(places: Tensor, length: int) -> list[tuple[Tensor, Tensor]]:
    """Return both neighbours of each place along a line, with their weights; none far outside."""
    inside = ((places >= -1) & (places <= length)).to(places.dtype)
    places = ops.clamp(places, 0, length - 1)
    low = ops.floor(places)
    weight = places - low
    first = low.to(dtype_of(7))
    second = ops.clamp(first + 1, max=length - 1)
    return [(first, (1 - weight) * inside), (second, weight * inside)]


@operator("RoiAlign")
def roi_align_old(
    X: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    size = output_height, output_width
    return _regions(X, rois, batch_indices, size, sampling_ratio, spatial_scale, 0.0, mode)


@operator("RoiAlign", since=16)
def roi_align(
    X: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    half = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    size = output_height, output_width
    return _regions(X, rois, batch_indices, size, sampling_ratio, spatial_scale, half, mode)


@operator("MaxRoiPool")
def max_roi_pool(
    X: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Tensor:
    h, w = X.shape[2:]
    results: list[Tensor] = []
    for image, *roi in rois.tolist():
        x1, y1, x2, y2 = (int(c * spatial_scale + 0.5) for c in roi)
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        rows: list[Tensor] = []
        for i in range(pooled_shape[0]):
            top = min(max(y1 + i * high // pooled_shape[0], 0), h)
            bottom = min(max(y1 - (-(i + 1) * high // pooled_shape[0]), 0), h)
            for j in range(pooled_shape[1]):
                left = min(max(x1 + j * wide // pooled_shape[1], 0), w)
                right = min(max(x1 - (-(j + 1) * wide // pooled_shape[1]), 0), w)
                part = X[int(image), :, top:bottom, left:right]
                rows.append(ops.amax(part, (1, 2)) if part.numel() else X[0, :, 0, 0] * 0)
        results.append(ops.stack(rows, -1).reshape(-1, *pooled_shape))
    return ops.stack(results)


@operator(
    "NonMaxSuppression",
    host=("max_output_boxes_per_class", "iou_threshold", "score_threshold"),
)
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """Return (batch, class, box) of the boxes that no box of a higher score covers, by descending score."""
    limit: int = _number(max_output_boxes_per_class) or 0
    overlap: float = _number(iou_threshold) or 0.0
    least: float | None = _number(score_threshold)
    a, b, c, d = ops.unbind(boxes, -1)
    if center_point_box:
        a, b, c, d = b - d / 2, a - c / 2, b + d / 2, a + c / 2
    top, bottom = ops.minimum(a, c), ops.maximum(a, c)
    left, right = ops.minimum(b, d), ops.maximum(b, d)
    high = ops.minimum(bottom[:, :, None], bottom[:, None]) - ops.maximum(
        top[:, :, None], top[:, None]
    )
    wide = ops.minimum(right[:, :, None], right[:, None]) - ops.maximum(
        left[:, :, None], left[:, None]
    )
    common = ops.clamp(high, min=0) * ops.clamp(wide, min=0)
    area = (bottom - top) * (right - left)
    covered = (common / (area[:, :, None] + area[:, None] - common) > overlap).tolist()
    found: list[list[int]] = []
    orders = ops.argsort(scores, dim=-1, descending=True, stable=True).tolist()
    values = scores.tolist()
    for batch, classes in enumerate(orders):
        for label, order in enumerate(classes):
            kept: list[int] = []
            for box in order:
                if len(kept) >= limit:
                    break
                if least is not None and values[batch][label][box] <= least:
                    break
                if not any(covered[batch][box][other] for other in kept):
                    kept.append(box)
            found += [[batch, label, box] for box in kept]
    return tensor(found, dtype=dtype_of(7), device=boxes.device).reshape(-1, 3)


def _number(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value
