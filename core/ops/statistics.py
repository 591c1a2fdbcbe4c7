"""Variance, standard deviation and what is built on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..dtypes import FLOATING, Number, bfloat16, float16, float32
from ..operators import composite
from ..shapes import Shape, normalize_dims
from .reductions import Dims, mean, sum
from .rules import cast, check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["std", "std_mean", "var", "var_mean"]

_HALVES = (float16, bfloat16)


def _canonical(
    name: str,
    input: Tensor,
    dim: Dims | bool,
    unbiased: bool | None,
    keepdim: bool,
    correction: Number | None,
) -> tuple[Tensor, Shape, float, bool]:
    """Return the arguments of the inner op; `dim` may hold torch's older positional `unbiased`."""
    check_tensor(input, name)
    if input.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}(): std and var only support floating point and complex dtypes, got {input.dtype}"
        )
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}(): unbiased was given twice")
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}() takes either unbiased or correction, got both")
        correction = int(unbiased)
    dims = normalize_dims(dim, len(input._shape), name)
    return input, dims, 1 if correction is None else correction, bool(keepdim)  # type: ignore[return-value]


def degrees_of_freedom(shape: Shape, dim: Shape, correction: float) -> float:
    """Return the divisor of a variance, not below zero."""
    freedom = math.prod([shape[d] for d in dim]) - correction
    return freedom if freedom > 0 else 0


def reciprocal(value: float) -> float:
    """Return ``1 / value``; infinity for zero, as tensors have it."""
    return 1 / value if value else math.inf


@composite(method=False)
def _var(input: Tensor, dim: Shape, correction: float, keepdim: bool) -> Tensor:
    """Return the variance for canonical arguments."""
    wide = cast(input, float32) if input.dtype in _HALVES else input
    distance = wide - mean(wide, dim, True)
    squares = (distance * distance.conj()).real if input.is_complex() else distance * distance
    scale = degrees_of_freedom(input._shape, dim, correction)
    total = sum(squares, dim, keepdim)
    return cast(total / scale, input.dtype.to_real())


@composite(method=False)
def _std(input: Tensor, dim: Shape, correction: float, keepdim: bool) -> Tensor:
    """Return the standard deviation for canonical arguments."""
    wide = cast(input, float32) if input.dtype in _HALVES else input
    return cast(_var(wide, dim, correction, keepdim).sqrt(), input.dtype.to_real())


@composite()
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Tensor:
    """Return the variance over the dimensions `dim`, or over all of them.

    Parameters
    ----------
    input : Tensor
        Of a floating-point or complex dtype; the variance of complex numbers is real.
    dim : int or sequence of int, optional
        The dimensions to reduce.
    unbiased : bool, optional
        False stands for ``correction=0``.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    correction : number, optional
        The sum of squared distances from the mean is divided by the number of elements less this; by
        default 1 (Bessel's correction).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.var(tp.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(1.6667)
    """
    return _var(*_canonical("var", input, dim, unbiased, keepdim, correction))


@composite()
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of :func:`var`, which has the same arguments.

    Where it is zero, so is its gradient.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.std(tp.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(1.2910)
    """
    return _std(*_canonical("std", input, dim, unbiased, keepdim, correction))


@composite(outputs="var, mean", method=False)
def var_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (variance, mean); the arguments are those of :func:`var`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.var_mean(tp.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    arguments = _canonical("var_mean", input, dim, unbiased, keepdim, correction)
    return _var(*arguments), mean(input, arguments[1], keepdim)


@composite(outputs="std, mean", method=False)
def std_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (standard deviation, mean); the arguments are those of :func:`var`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.std_mean(tp.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    arguments = _canonical("std_mean", input, dim, unbiased, keepdim, correction)
    return _std(*arguments), mean(input, arguments[1], keepdim)
