"""Rows of a table whose gradient is sparse: it holds the rows that were taken."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import Function
from tensorplug.core.ops import index_select

from .coordinates import CooTensor


class _Rows(Function):
    """Rows of a table by their numbers."""

    @staticmethod
    def forward(ctx: Any, weight: Any, indices: Any, padding_idx: int | None, counted: bool) -> Any:
        ctx.save_for_backward(indices)
        ctx.shape = weight._shape
        ctx.padding_idx = padding_idx
        ctx.counted = counted
        flat = index_select(weight, 0, indices.reshape(-1))
        return flat.reshape(*indices._shape, weight._shape[1])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (g,) = grad_outputs
        if ctx.counted:
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
        (indices,) = ctx.saved_tensors
        places = indices.reshape(-1)
        values = g.reshape(places._shape[0], ctx.shape[1])
        if ctx.padding_idx is not None:
            chosen = (places != ctx.padding_idx).nonzero().squeeze(1)
            places, values = places.index_select(0, chosen), values.index_select(0, chosen)
        return CooTensor.of(places.unsqueeze(0), values, ctx.shape), None, None, None


def rows(weight: Any, indices: Any, padding_idx: int | None, scale_grad_by_freq: bool) -> Any:
    """Return the rows of `weight` that `indices`, of int64, names; a leaf's gradient is sparse."""
    return _Rows.apply(weight, indices, padding_idx, scale_grad_by_freq)
