"""Variance, standard deviation and what is built on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import (
    BOOL,
    COMPLEXES,
    FLOATING,
    FLOATS,
    INTEGER,
    Number,
    bfloat16,
    float16,
    float32,
    result_dtype,
    scalar_type,
)
from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import exact_out
from ...errors import check_flag
from ...tensor.shapes import Shape, normalize_dims
from ..reductions.reductions import Dims, amin, mean, sum
from ..rules import cast, check_tensor, to_floating

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["corrcoef", "cov", "std", "std_mean", "var", "var_mean"]

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
    if unbiased is not None:
        check_flag(unbiased, name, "unbiased")
    if input.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}(): std and var only support floating point and complex dtypes, got "
            f"{input.dtype}"
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
    """Return the divisor of a variance, not below zero; of nothing zero, whatever the correction."""
    count = math.prod([shape[d] for d in dim])
    return max(count - correction, 0) if count else 0


def reciprocal(value: float) -> float:
    """Return ``1 / value``; infinity for zero, as tensors have it."""
    return 1 / value if value else math.inf


def _canonical_var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Shape, float, bool]:
    return _canonical("var", input, dim, unbiased, keepdim, correction)


def _canonical_std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Shape, float, bool]:
    return _canonical("std", input, dim, unbiased, keepdim, correction)


@composite("input, dim, correction, keepdim", rule=_canonical_var)
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
        The sum of squared distances from the mean is divided by the number of elements less this;
        by default 1 (Bessel's correction).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.var(tp.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(1.6667)
    """
    dims: Any = dim
    wide = cast(input, float32) if input.dtype in _HALVES else input
    distance = wide - mean(wide, dims, True)
    squares = (distance * distance._conj()).real if input.is_complex() else distance * distance
    scale = degrees_of_freedom(input._shape, dims, correction or 0)  # type: ignore[arg-type]
    total = sum(squares, dims, keepdim)
    return cast(total / scale, input.dtype.to_real())


@composite("input, dim, correction, keepdim", rule=_canonical_std)
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
    wide = cast(input, float32) if input.dtype in _HALVES else input
    found = var(wide, dim, keepdim=keepdim, correction=correction).sqrt()
    return cast(found, input.dtype.to_real())


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
    input, dims, by, keepdim = _canonical("var_mean", input, dim, unbiased, keepdim, correction)
    return var(input, dims, keepdim=keepdim, correction=by), mean(input, dims, keepdim)


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
    input, dims, by, keepdim = _canonical("std_mean", input, dim, unbiased, keepdim, correction)
    return std(input, dims, keepdim=keepdim, correction=by), mean(input, dims, keepdim)


# --- covariance -------------------------------------------------------------------------------


def _check_weights(weights: Tensor, label: str, count: int, category: int, kind: str) -> None:
    if len(weights._shape) > 1:
        raise RuntimeError(
            f"cov(): expected {label} to have one or fewer dimensions but got {label} with "
            f"{len(weights._shape)} dimensions"
        )
    if weights.dtype.category != category:
        raise RuntimeError(
            f"cov(): expected {label} to have {kind} dtype but got {label} with "
            f"{scalar_type(weights.dtype)} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {label} to have the same numel as there are observations in the "
            f"input but got {weights.numel()} != {count}"
        )
    if count and not weights.is_meta and amin(weights).item() < 0:
        raise RuntimeError(f"cov(): {label} cannot be negative")


@composite()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariance matrix of variables in rows, observed in columns.

    Parameters
    ----------
    input : Tensor
        Of at most two dimensions; one is a single variable, whose variance is returned.
    correction : int
        Taken off the number of observations in the divisor.
    fweights : Tensor, optional
        How often each observation counts: nonnegative integers.
    aweights : Tensor, optional
        How important each observation is: nonnegative floating-point numbers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cov(tp.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_tensor(input, "cov")
    if len(input._shape) > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{len(input._shape)} dimensions"
        )
    if input.dtype.category == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input if len(input._shape) == 2 else input.reshape(1, -1)
    count = rows._shape[1]
    weights: Any = None
    if fweights is not None:
        _check_weights(fweights, "fweights", count, INTEGER, "integral")
        weights = fweights
    if aweights is not None:
        _check_weights(aweights, "aweights", count, FLOATING, "floating point")
        weights = aweights if weights is None else weights * aweights
    rows = cast(
        rows, to_floating(rows.dtype if aweights is None else result_dtype([rows, aweights]))
    )
    if weights is None:
        average = mean(rows, 1, True)
        divisor: Any = max(0, count - correction)
    else:
        weights = cast(weights, rows.dtype) if rows.is_complex() else weights
        total = sum(weights)
        average = sum(rows * weights, 1, True) / total
        if aweights is None or correction == 0:
            divisor = total - correction
        else:
            divisor = total - correction * sum(weights * aweights) / total
        divisor = divisor.real.clamp(min=0) if divisor.is_complex() else divisor.clamp(min=0)
    distance = rows - average
    weighted = distance if weights is None else distance * weights
    product = distance @ weighted.transpose(0, 1)._conj()
    result = product / divisor
    return result if len(input._shape) == 2 and input._shape[0] != 1 else result.reshape(())


@composite()
def corrcoef(input: Tensor) -> Tensor:
    """Return the matrix of correlation coefficients of variables in rows, observed in columns.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.corrcoef(tp.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    check_tensor(input, "corrcoef")
    if len(input._shape) > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{len(input._shape)} dimensions"
        )
    covariance = cov(input)
    if not covariance._shape:
        return covariance / covariance
    diagonal = covariance.diagonal()
    deviation = (diagonal.real if covariance.is_complex() else diagonal).sqrt()
    result = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    # Rounding can lead outside of what a correlation can be.
    if result.is_complex():
        return result
    return result.clamp(-1, 1)


exact_out(var, std, others=(*FLOATS, *COMPLEXES))
