"""Dropout."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import defined_by
from tensorplug.core.dispatch.writes import inplace as write_in_place

from ..ops import dropout as ops

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


def _written(function: Any, input: Tensor, p: float, training: bool) -> Tensor:
    op = function.op
    result: Tensor = write_in_place(op, f"{op.name}_", input, (p, training), {})
    return result


@defined_by(ops.dropout)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with each element zeroed with probability `p` and the rest scaled by 1/(1-p).

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    p : float
        Probability of a zero.
    training : bool
        Whether anything is done at all.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> import tensorplug as tp
    >>> dropout(tp.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    if inplace:
        return _written(ops.dropout, input, p, training)
    return ops.dropout(input, p, training)


@defined_by(ops.dropout1d)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, L) or (C, L) with whole channels zeroed with probability `p`."""
    if inplace:
        return _written(ops.dropout1d, input, p, training)
    return ops.dropout1d(input, p, training)


@defined_by(ops.dropout2d)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, H, W) or (N, C, L) with whole channels zeroed with probability `p`."""
    if inplace:
        return _written(ops.dropout2d, input, p, training)
    return ops.dropout2d(input, p, training)


@defined_by(ops.dropout3d)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, D, H, W) or (C, D, H, W) with whole channels zeroed with probability `p`."""
    if inplace:
        return _written(ops.dropout3d, input, p, training)
    return ops.dropout3d(input, p, training)


@defined_by(ops.alpha_dropout)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with dropout that keeps mean and variance, for networks of SELU."""
    if inplace:
        return _written(ops.alpha_dropout, input, p, training)
    return ops.alpha_dropout(input, p, training)


@defined_by(ops.feature_alpha_dropout)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with alpha dropout of whole channels."""
    if inplace:
        return _written(ops.feature_alpha_dropout, input, p, training)
    return ops.feature_alpha_dropout(input, p, training)
