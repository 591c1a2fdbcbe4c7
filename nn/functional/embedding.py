"""Sums, means and maxima over bags of embeddings."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dtypes import INTEGER, int64
from tensorplug.core.ops import arange, searchsorted, where

from ..ops.embedding import embedding_rows
from ._common import tensor
from .linear import limit_norms

__all__ = ["embedding_bag"]


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return one row for each bag of rows of `weight`.

    Parameters
    ----------
    input : Tensor
        Integers, (bags, length), or (total,) with `offsets`.
    weight : Tensor
        (rows, features).
    offsets : Tensor, optional
        Where each bag begins in `input`.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As in :func:`embedding`.
    mode : {"sum", "mean", "max"}
        What is made of a bag; an empty one gives zeros.
    per_sample_weights : Tensor, optional
        Of the input's shape: factors of the rows, with mode "sum" only.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that takes no part.

    Raises
    ------
    ValueError, RuntimeError, NotImplementedError
        If shapes or options do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> weight = tp.tensor([[1.0], [2.0], [4.0]])
    >>> embedding_bag(tp.tensor([0, 1, 2]), weight, tp.tensor([0, 2]), mode="sum")
    tensor([[3.],
            [4.]])
    """
    tensor(input, "embedding_bag")
    _check(input, weight, offsets, mode, scale_grad_by_freq, per_sample_weights, sparse)
    if input.ndim == 2:
        bags, length = input.shape
        flat = input.reshape(-1).to(int64)
        factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        membership: Any = arange(bags * length, device=input.device).floor_divide(max(length, 1))
    else:
        assert offsets is not None
        if not offsets.is_meta and offsets.numel() and int(offsets[0].item()) != 0:
            raise ValueError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                f"position 0. However, got {int(offsets[0].item())}"
            )
        starts = offsets.to(int64)
        starts = starts[:-1] if include_last_offset else starts
        flat, factors, bags = input.to(int64), per_sample_weights, starts.shape[0]
        membership = (
            searchsorted(starts, arange(flat.shape[0], device=input.device), right=True) - 1
        )
    rows = weight.shape[0]
    padding = -1 if padding_idx is None else _padding_row(padding_idx, rows)
    if max_norm is not None:
        limit_norms(weight, flat, max_norm, norm_type)
    members = embedding_rows(weight, flat, padding, scale_grad_by_freq)
    counted = flat != padding
    empty = weight.new_zeros((bags, weight.shape[1]))
    if mode == "max":
        return _largest(members, membership, counted, empty)
    if factors is not None:
        members = members * factors.unsqueeze(1)
    members = where(counted.unsqueeze(1), members, 0.0)
    totals = empty.index_add(0, membership, members)
    if mode == "sum":
        return totals
    counts = weight.new_zeros((bags,)).index_add(0, membership, counted.to(weight.dtype))
    return totals / counts.clamp(min=1).unsqueeze(1)


def _padding_row(padding_idx: int, rows: int) -> int:
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"padding_idx must be within the number of embeddings, got {padding_idx}"
        )
    return padding_idx % rows


def _largest(members: Any, membership: Any, counted: Any, empty: Any) -> Any:
    lowest = where(counted.unsqueeze(1), members, -float("inf"))
    index = membership.unsqueeze(1).expand(members.shape)
    best = (empty - float("inf")).scatter_reduce(0, index, lowest, "amax", include_self=True)
    return where(best == -float("inf"), 0.0, best)


def _check(
    input: Any, weight: Any, offsets: Any, mode: str, by_frequency: bool, factors: Any, sparse: bool
) -> None:
    if input.dtype.category != INTEGER:
        raise RuntimeError(f"embedding_bag(): expected integers as input, got {input.dtype}")
    if weight.ndim != 2:
        raise RuntimeError(f"embedding_bag(): 'weight' must be 2-D, got {list(weight.shape)}")
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
            "length sequences."
        )
    if input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    elif input.ndim != 2:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if factors is not None:
        if tuple(factors.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(factors.shape)}) is not None, then it must "
                f"have the same shape as the input ({list(input.shape)})"
            )
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
                f"mode='sum' (got mode='{mode}')."
            )
