"""Losses of classification."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.nn import functional as F

from ..registry import operator

__all__: list[str] = []


@operator("NegativeLogLikelihoodLoss")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    classes = input.shape[1]
    target = target.long()
    kept = ops.ones_like(target) > 0 if ignore_index is None else target != ignore_index
    safe = ops.where(kept, target, ops.zeros_like(target))
    picked = -ops.gather(input, 1, ops.unsqueeze(safe, 1)).squeeze(1)
    weights = (
        ops.ones(classes, dtype=input.dtype, device=input.device) if weight is None else weight
    )
    each = ops.where(kept, weights[safe], ops.zeros_like(picked))
    losses = ops.where(kept, picked * each, ops.zeros_like(picked))
    if reduction == "none":
        return losses
    return ops.sum(losses) / ops.sum(each) if reduction == "mean" else ops.sum(losses)


@operator("SoftmaxCrossEntropyLoss")
def cross_entropy(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    n_outputs: int,
) -> Any:
    logs = F.log_softmax(scores, 1)
    loss = nll_loss(logs, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs)[:n_outputs]
