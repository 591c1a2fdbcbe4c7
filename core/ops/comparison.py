"""Comparisons and tests of elements; the results are of bool."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..device.dtypes import COMPLEX, FLOATING, INTEGER, Number, bool_, get_default_dtype
from ..dispatch.op_registry import Delegated, Spec, composite, handle, primitive
from ..dispatch.out_dtypes import exact_out
from .arithmetic.pointwise import abs, add, mul, sub
from .bitwise import bitwise_and, bitwise_or
from .rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "allclose",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "le",
    "less",
    "less_equal",
    "lt",
    "ne",
    "not_equal",
]


@primitive("input, other", pointwise=True, inplace=True)
def eq(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` is equal to `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eq(tp.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])
    """
    return elementwise("eq", input, other, result=bool_)


@primitive("input, other", pointwise=True, inplace=True, aliases=("not_equal",))
def ne(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` differs from `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ne(tp.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])
    """
    return elementwise("ne", input, other, result=bool_)


@primitive("input, other", pointwise=True, inplace=True, aliases=("less",))
def lt(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` is less than `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.lt(tp.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return elementwise("lt", input, other, result=bool_, without=(COMPLEX,))


@primitive("input, other", pointwise=True, inplace=True, aliases=("less_equal",))
def le(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` is less than or equal to `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.le(tp.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return elementwise("le", input, other, result=bool_, without=(COMPLEX,))


@primitive("input, other", pointwise=True, inplace=True, aliases=("greater",))
def gt(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` is greater than `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.gt(tp.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return elementwise("gt", input, other, result=bool_, without=(COMPLEX,))


@primitive("input, other", pointwise=True, inplace=True, aliases=("greater_equal",))
def ge(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return where `input` is greater than or equal to `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ge(tp.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return elementwise("ge", input, other, result=bool_, without=(COMPLEX,))


@composite()
def isnan(input: Tensor) -> Tensor:
    """Return where an element is nan (of a complex one: either part).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isnan(tp.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    check_tensor(input, "isnan")
    return ne(input, input)


@composite()
def isinf(input: Tensor) -> Tensor:
    """Return where an element is infinite (of a complex one: either part).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isinf(tp.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """
    check_tensor(input, "isinf")
    category = input.dtype.category
    if category < FLOATING:
        return _ZEROS_LIKE.call(input, dtype=bool_)
    if category == COMPLEX:
        return bitwise_or(isinf(_REAL.call(input)), isinf(_IMAG.call(input)))
    return eq(abs(input), math.inf)


_ZEROS_LIKE, _ONES_LIKE = handle("zeros_like"), handle("ones_like")
_IMAG = handle("imag")
_REAL = handle("real")


@composite()
def isfinite(input: Tensor) -> Tensor:
    """Return where an element is neither infinite nor nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isfinite(tp.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    check_tensor(input, "isfinite")
    if input.dtype.category < FLOATING:
        return _ONES_LIKE.call(input, dtype=bool_)
    # Only of a finite number is the difference from itself zero rather than nan.
    return eq(sub(input, input), 0)


@composite()
def isposinf(input: Tensor) -> Tensor:
    """Return where an element is positive infinity.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isposinf(tp.tensor([float("-inf"), float("inf")]))
    tensor([False,  True])
    """
    return _is_infinity(input, math.inf, "isposinf")


@composite()
def isneginf(input: Tensor) -> Tensor:
    """Return where an element is negative infinity.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isneginf(tp.tensor([float("-inf"), float("inf")]))
    tensor([ True, False])
    """
    return _is_infinity(input, -math.inf, "isneginf")


def _is_infinity(input: Tensor, infinity: float, name: str) -> Tensor:
    check_tensor(input, name)
    if input.dtype.category == COMPLEX:
        raise RuntimeError(f"{name} does not support complex inputs. Use isinf()")
    return eq(input, infinity)


@composite()
def isreal(input: Tensor) -> Tensor:
    """Return where an element has no imaginary part.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isreal(tp.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    check_tensor(input, "isreal")
    if input.dtype.category == COMPLEX:
        return eq(_IMAG.call(input), 0)
    return _FILL_NEW.call(input._shape, True, bool_, input._key.device)


_FILL_NEW = handle("fill_new")


def check_tolerances(name: str, rtol: float, atol: float) -> None:
    """Raise RuntimeError unless both are zero or more."""
    for label, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:  # nan neither
            raise RuntimeError(
                f"{name}(): {label} must be greater than or equal to zero, but got {tolerance}"
            )


@composite()
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return where ``abs(input - other) <= atol + rtol * abs(other)``.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype; broadcast against each other.
    rtol, atol : float
        The relative and the absolute tolerance, not negative.
    equal_nan : bool
        Whether two nan count as close.

    Raises
    ------
    RuntimeError
        If the dtypes differ or a tolerance is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isclose(tp.tensor([1.0, 2.0]), tp.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    check_tensor(input, "isclose")
    check_tensor(other, "isclose", "other")
    if input.dtype is not other.dtype:
        raise RuntimeError(
            f"isclose(): {input.dtype.name} did not match {other.dtype.name}; convert one"
        )
    check_tolerances("isclose", rtol, atol)
    close = eq(input, other)
    if equal_nan and input.dtype.category >= FLOATING:
        close = bitwise_or(close, bitwise_and(ne(input, input), ne(other, other)))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.category <= INTEGER:
        input, other = cast(input, get_default_dtype()), cast(other, get_default_dtype())
    allowed = add(abs(mul(other, rtol)), atol)
    actual = abs(sub(input, other))
    return bitwise_or(close, bitwise_and(isfinite(actual), le(actual, allowed)))


@composite(outputs="")
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return whether all elements are close, see :func:`isclose`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.allclose(tp.tensor([1.0]), tp.tensor([1.0 + 1e-9]))
    True
    """
    return bool(_ALL.call(isclose(input, other, rtol, atol, equal_nan)))


@composite(outputs="", method=False)
def is_within(input: Tensor, low: float, high: float) -> bool:
    """Return whether all elements lie between two bounds, both included; NaN does not.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.is_within(tp.tensor([0.0, 1.0]), 0.0, 1.0)
    True
    """
    return bool(_ALL.call((input >= low) & (input <= high)))


def _canonical_equal(input: Any, other: Any) -> Any:
    check_tensor(input, "equal")
    check_tensor(other, "equal", "other")
    if input._key.device is not other._key.device:
        raise RuntimeError(
            f"equal(): Expected all tensors to be on the same device, but found {input.device} and "
            f"{other.device}"
        )
    if input._shape == other._shape:
        return input, other
    return Delegated.to(_unequal, input, other)


def _unequal(_input: Any, _other: Any) -> bool:
    """Return whether tensors of two shapes are equal: never."""
    return False


@composite(rule=_canonical_equal, outputs="")
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.equal(tp.tensor([1, 2]), tp.tensor([1, 2])), tp.equal(tp.tensor([1]), tp.tensor([1, 1]))
    (True, False)
    """
    return bool(_ALL.call(eq(input, other)))


_ALL = handle("all")

greater = gt
greater_equal = ge
less = lt
less_equal = le
not_equal = ne


exact_out(
    isposinf, isneginf, said="{name} does not support non-boolean outputs. Got one of {1.name}"
)
