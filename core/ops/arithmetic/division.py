"""Quotients and remainders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, Number, result_dtype
from ...dispatch.op_registry import Delegated, Spec, composite, handle, primitive
from ...tensor.base import TensorBase
from ..rules import check_tensor, elementwise, rounded_once
from .pointwise import mul, sub

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "reciprocal",
    "remainder",
    "true_divide",
]


_TRUNC = handle("trunc")


@primitive(
    "input, other",
    pointwise=True,
    scales=True,
    inplace=True,
    delegates="floor_divide those that round down, trunc_divide and fmod those that cut off",
    aliases=("divide", "true_divide"),
)
def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None
) -> Spec:
    """Return ``input / other``, rounded if asked for.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other and promoted to one dtype.
    rounding_mode : {None, "trunc", "floor"}
        None gives the exact quotient, of integers in the default dtype; "trunc" rounds towards zero
        as C does, "floor" down as Python's ``//`` does, and both keep an integer dtype.

    Raises
    ------
    RuntimeError
        For another rounding mode; "ZeroDivisionError" if an integer is divided by zero and rounded.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([-7, 7])
    >>> tp.div(a, 2), tp.div(a, 2, rounding_mode="trunc"), tp.div(a, 2, rounding_mode="floor")
    (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return elementwise(
            "div",
            input,
            other,
            floating=True,
            numbers=True,
            scaling=div if isinstance(input, TensorBase) else None,  # a dividend is rounded
        )
    if rounding_mode == "floor":
        return Delegated.to(floor_divide, input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r}"
        )
    compute = result_dtype((input, other))
    if compute.category >= FLOATING:
        if compute.is_half and not (isinstance(other, TensorBase) and other._shape):
            return Delegated.to(rounded_once, trunc_divide, compute, input, other)
        return Delegated.to(trunc_divide, input, other)
    dividend, divisor = elementwise("div", input, other, without=(BOOL,), numbers=True).values
    # What fmod leaves of the dividend is a multiple of the divisor.
    return Delegated(floor_divide(sub(dividend, fmod(dividend, divisor)), divisor))


def _divided(input: Any, other: Any) -> Tensor:
    """Return a number divided by a tensor; of half precision it is a multiple of the reciprocal."""
    if other._key.dtype.is_half and isinstance(input, (int, float)) and input != 1:
        return mul(div(1, other), input)
    return div(input, other)


div.op.reflected = _divided  # type: ignore[attr-defined]


def _operands(input: Tensor | Number, other: Tensor | Number) -> tuple[Any, ...]:
    return elementwise("div", input, other, without=(BOOL, INTEGER), numbers=True).values


@composite(rule=_operands, method=False, elementwise=True)
def trunc_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the quotient of floating-point numbers rounded towards zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.trunc_divide(tp.tensor([-7.0, 7.0]), 2)
    tensor([-3.,  3.])
    """
    return _TRUNC.call(div(input, other))


@primitive("input, other", pointwise=True, scales=True, inplace=True)
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the quotient rounded down, as Python's ``//``.

    Raises
    ------
    RuntimeError
        "ZeroDivisionError" if an integer is divided by zero; floating point gives inf or nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.floor_divide(tp.tensor([-7, 7]), 2)
    tensor([-4,  3])
    """
    return elementwise(
        "floor_divide",
        input,
        other,
        without=(BOOL, COMPLEX),
        numbers=True,
        scaling=floor_divide if isinstance(input, TensorBase) else None,
    )


@primitive("input, other", pointwise=True, inplace=True)
def remainder(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the remainder of floor division, which has the sign of `other`, as Python's ``%``.

    Raises
    ------
    RuntimeError
        "ZeroDivisionError" if an integer is divided by zero; floating-point numbers give nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.remainder(tp.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """
    return elementwise("remainder", input, other, without=(BOOL, COMPLEX))


@primitive("input, other", pointwise=True, inplace=True)
def fmod(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the remainder of truncated division, which has the sign of `input`, as C's ``fmod``.

    Raises
    ------
    RuntimeError
        "ZeroDivisionError" if an integer is divided by zero; floating-point numbers give nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fmod(tp.tensor([-3.0, 3.0]), 2)
    tensor([-1.,  1.])
    """
    return elementwise("fmod", input, other, without=(BOOL, COMPLEX))


@composite(inplace=True)
def reciprocal(input: Tensor) -> Tensor:
    """Return one divided by each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.reciprocal(tp.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """
    check_tensor(input, "reciprocal")
    return div(1, input)


divide = true_divide = div
