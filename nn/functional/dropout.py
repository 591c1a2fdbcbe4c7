"""Dropout."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.current import current
from tensorplug.core.dtypes import FLOATING, float32
from tensorplug.core.generator import generator_of
from tensorplug.core.ops import rand

from ..ops.dropout import random_dropout
from ._common import tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


def _check(input: Any, p: float, name: str) -> None:
    tensor(input, name)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}(): dropout probability has to be between 0 and 1, but got {p}")


def _kept(input: Tensor, shape: Any, p: float) -> Tensor:
    """Return True with probability 1 - p."""
    return rand(*shape, dtype=float32, device=input.device) >= p


def _drop(input: Tensor, shape: Any, p: float, training: bool, inplace: bool) -> Tensor:
    if not training or p == 0.0:
        return input
    if (
        shape is input._shape
        and not (inplace or current.interposed)  # of which vmap wants to see how numbers are drawn
        and input.dtype.category == FLOATING
    ):
        seed, offset = generator_of(input.device).take(math.prod(shape))
        return random_dropout(input, p, seed, offset)[0]
    scale = _kept(input, shape, p).to(input.dtype) * (1 / (1 - p) if p < 1 else 0.0)
    return input.mul_(scale) if inplace else input * scale


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
    _check(input, p, "dropout")
    return _drop(input, input._shape, p, training, inplace)


def _feature_dropout(count: int, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    name = f"dropout{count}d"
    _check(input, p, name)
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{name}: Expected {count + 1}D or {count + 2}D input, but received a {input.ndim}D input"
        )
    leading = input.ndim - count
    shape = (*input.shape[:leading], *[1] * count)
    return _drop(input, shape, p, training, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, L) or (C, L) with whole channels zeroed with probability `p`."""
    return _feature_dropout(1, input, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, H, W) or (C, H, W) with whole channels zeroed with probability `p`."""
    return _feature_dropout(2, input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input` (N, C, D, H, W) or (C, D, H, W) with whole channels zeroed with probability `p`."""
    return _feature_dropout(3, input, p, training, inplace)


def _alpha(input: Tensor, shape: Any, p: float, training: bool) -> Tensor:
    if not training or p == 0.0:
        return input
    # Klambauer et al. 2017, section 3: dropped elements take SELU's lower limit, then an affine map
    # brings mean and variance back.
    limit = -1.7580993408473766
    a = ((1 - p) * (1 + p * limit * limit)) ** -0.5 if p < 1 else 0.0
    kept = _kept(input, shape, p)
    return input.where(kept, limit) * a - a * limit * p


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with dropout that keeps mean and variance, for networks of SELU."""
    _check(input, p, "alpha_dropout")
    result = _alpha(input, input.shape, p, training)
    return input.copy_(result) if inplace else result


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with alpha dropout of whole channels."""
    _check(input, p, "feature_alpha_dropout")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    result = _alpha(input, shape, p, training)
    return input.copy_(result) if inplace else result
