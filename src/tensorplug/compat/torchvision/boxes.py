"""Non-maximum suppression."""

from __future__ import annotations

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import composite, derivative

#: How many boxes are compared with each other at a time.
BLOCK = 1024


@composite(name="torchvision.nms", method=False)
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of the boxes that no box of a higher score overlaps, the highest score first.

    Parameters
    ----------
    dets : Tensor
        (n, 4): ``(x1, y1, x2, y2)`` of each box.
    scores : Tensor
        (n,).
    iou_threshold : float
        Boxes are dropped whose intersection with a box that is kept is more than this part of their union.

    Returns
    -------
    Tensor
        (kept,), int64.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.
    """
    _check(dets, scores)
    order = scores.argsort(dim=0, descending=True, stable=True)
    kept = order[:0]
    for block in order.split(BLOCK):
        if len(kept):
            block = block[~_overlapping(dets[kept], dets[block], iou_threshold).any(0)]
        suppresses = _overlapping(dets[block], dets[block], iou_threshold).triu(1)
        # A box counts against others if it is kept itself. Whatever the start, the first n boxes are right
        # after n rounds; it takes as many as the longest chain of boxes that overlap.
        alive = tp.ones_like(block, dtype=tp.bool)
        while True:
            still = ~(suppresses & alive.unsqueeze(1)).any(0)
            if tp.equal(still, alive):
                break
            alive = still
        kept = tp.cat([kept, block[alive]])
    return kept


def _overlapping(one: Tensor, other: Tensor, threshold: float) -> Tensor:
    """Return which boxes of `one` (rows) and `other` (columns) overlap by more than the threshold."""
    one, other = one.unsqueeze(1), other.unsqueeze(0)
    area_one, area_other = [
        (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]) for boxes in (one, other)
    ]
    sides = (
        tp.minimum(one[..., 2:], other[..., 2:]) - tp.maximum(one[..., :2], other[..., :2])
    ).clamp(min=0)
    common = sides[..., 0] * sides[..., 1]
    # The ratio in the dtype of the boxes, the threshold as it is.
    return (common / (area_one + area_other - common)).double() > threshold


def _check(dets: Tensor, scores: Tensor) -> None:
    if dets.ndim != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"nms(): expected boxes of shape [n, 4], got {list(dets.shape)}")
    if tuple(scores.shape) != (dets.shape[0],):
        raise RuntimeError(
            f"nms(): expected a score for each of {dets.shape[0]} boxes, got {list(scores.shape)}"
        )


OPS = [nms]

DERIVATIVES = [derivative("torchvision.nms", dets=None, scores=None)]
