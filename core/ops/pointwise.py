"""Pointwise arithmetic: sums, products, quotients, powers, signs and absolute values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BOOL, COMPLEX, FLOATING, INTEGER, DType, Number, int64, result_dtype
from ..operators import Spec, composite, handle, primitive
from ..tensor_base import TensorBase
from .rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "add",
    "addcdiv",
    "addcmul",
    "conj",
    "conj_physical",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "lerp",
    "mul",
    "multiply",
    "neg",
    "negative",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "rsub",
    "sgn",
    "sign",
    "square",
    "sub",
    "subtract",
    "true_divide",
]


@primitive("input, other", pointwise=True, inplace=True)
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Spec:
    """Return ``input + alpha * other``.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other and promoted to one dtype.
    alpha : number
        Multiplies `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.add(tp.tensor([1, 2]), tp.tensor([0.5, 0.5]), alpha=2)
    tensor([2., 3.])
    """
    return elementwise("add", input, _scaled("add", input, other, alpha))


@primitive("input, other", pointwise=True, inplace=True, aliases=("subtract",))
def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Spec:
    """Return ``input - alpha * other``.

    Raises
    ------
    RuntimeError
        If an operand is a bool tensor: use ``^`` or ``logical_xor``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sub(tp.tensor([3.0]), 1)
    tensor([2.])
    """
    for operand in (input, other):
        if isinstance(operand, TensorBase) and operand._kind.dtype.category == BOOL:
            raise RuntimeError(
                "sub(): Subtraction, the `-` operator, with a bool tensor is not supported; use the "
                "`^` or `logical_xor()` operator instead"
            )
    return elementwise("sub", input, _scaled("sub", input, other, alpha))


def _scaled(
    name: str, input: Tensor | Number, other: Tensor | Number, alpha: Number
) -> Tensor | Number:
    if alpha == 1 and not isinstance(alpha, bool):
        return other
    compute = result_dtype((input, other))
    if isinstance(alpha, bool) and compute.category != BOOL:
        raise RuntimeError(
            f"{name}(): Boolean alpha only supported for Boolean results, got {alpha}"
        )
    if compute.category <= INTEGER and not isinstance(alpha, int):
        raise RuntimeError(
            f"{name}(): For integral input tensors, argument alpha must not be a floating point "
            f"number, got {alpha}"
        )
    if compute.category == BOOL:
        alpha = bool(alpha)
    return mul(cast(other, compute), alpha) if isinstance(other, TensorBase) else other * alpha


@composite()
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``other - alpha * input``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rsub(tp.tensor([1.0, 2.0]), 3)
    tensor([2., 1.])
    """
    return sub(other, input, alpha=alpha)


@primitive("input, other", pointwise=True, inplace=True, aliases=("multiply",))
def mul(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return ``input * other``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mul(tp.tensor([[1.0], [2.0]]), tp.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return elementwise("mul", input, other)


@primitive("input, other", pointwise=True, inplace=True)
def true_divide(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the exact quotient ``input / other``; integers are divided in the default dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.true_divide(tp.tensor([3, 4]), 2)
    tensor([1.5000, 2.0000])
    """
    return elementwise("div", input, other, floating=True)


@composite(inplace=True, aliases=("divide",))
def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None
) -> Tensor:
    """Return ``input / other``, rounded if asked for.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast against each other and promoted to one dtype.
    rounding_mode : {None, "trunc", "floor"}
        None gives the exact quotient, of integers in the default dtype; "trunc" rounds towards zero as C
        does, "floor" down as Python's ``//`` does, and both keep an integer dtype.

    Raises
    ------
    RuntimeError
        For another rounding mode; "ZeroDivisionError" if an integer is divided by zero and rounded.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([-7, 7])
    ... tp.div(a, 2), tp.div(a, 2, rounding_mode="trunc"), tp.div(a, 2, rounding_mode="floor")
    (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r}"
        )
    if result_dtype((input, other)).category >= FLOATING:
        return _TRUNC.call(true_divide(input, other))  # type: ignore[no-any-return]
    dividend, divisor = elementwise("div", input, other, without=(BOOL,)).values
    # What fmod leaves of the dividend is a multiple of the divisor.
    return floor_divide(sub(dividend, fmod(dividend, divisor)), divisor)


_TRUNC = handle("trunc")


@primitive("input, other", pointwise=True, inplace=True)
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the quotient rounded down, as Python's ``//``.

    Raises
    ------
    RuntimeError
        "ZeroDivisionError" if an integer is divided by zero; floating-point numbers give inf or nan.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.floor_divide(tp.tensor([-7, 7]), 2)
    tensor([-4,  3])
    """
    return elementwise("floor_divide", input, other, without=(BOOL, COMPLEX))


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


@primitive("input, exponent", pointwise=True, method=False)
def power(input: Tensor | Number, exponent: Tensor | Number) -> Spec:
    """Return ``input ** exponent``; an integer to a negative power is 0 unless it is 1 or -1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.power(tp.tensor([2, 1, -1]), tp.tensor([-1, -1, -1]))
    tensor([ 0,  1, -1])
    """
    return elementwise("pow", input, exponent)


@composite(inplace=True)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return ``input ** exponent``.

    Parameters
    ----------
    input, exponent : Tensor or number
        At least one tensor; broadcast against each other and promoted to one dtype.

    Raises
    ------
    RuntimeError
        If an integer tensor is raised to a negative integer: convert it to a floating-point dtype.

    Notes
    -----
    Where both are tensors of integers, a negative power gives 0, except of 1 and -1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.pow(tp.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    >>> tp.pow(2, tp.tensor([1.0, 2.0, 3.0]))
    tensor([2., 4., 8.])
    """
    if isinstance(input, TensorBase) and not isinstance(exponent, TensorBase):
        category = input._kind.dtype.category
        if category >= FLOATING:
            if exponent == 2 and not isinstance(exponent, complex):
                return square(input)
        elif isinstance(exponent, int) and exponent < 0:
            raise RuntimeError(
                f"pow(): Integers to negative integer powers are not allowed, got a tensor of "
                f"{input.dtype.name} and exponent {exponent}; convert it to a floating-point dtype"
            )
    return power(input, exponent)


@primitive("input", pointwise=True, inplace=True)
def square(input: Tensor) -> Spec:
    """Return the square of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.square(tp.tensor([-1.0, 3.0]))
    tensor([1., 9.])
    """
    check_tensor(input, "square")
    compute = input.dtype if input.dtype.category != BOOL else int64
    return elementwise("square", input, compute=compute)


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
    return true_divide(1, input)


@primitive("input", pointwise=True, inplace=True, aliases=("negative",))
def neg(input: Tensor) -> Spec:
    """Return the negative of each element.

    Raises
    ------
    RuntimeError
        For a bool tensor: use ``~`` or ``logical_not``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> -tp.tensor([1.0, -2.0])
    tensor([-1.,  2.])
    """
    _refuse_bool(input, "neg", "Negation, the `-` operator,")
    return elementwise("neg", input)


def _refuse_bool(input: Tensor, name: str, what: str) -> None:
    check_tensor(input, name)
    if input.dtype.category == BOOL:
        raise RuntimeError(
            f"{name}(): {what} on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead"
        )


@composite()
def positive(input: Tensor) -> Tensor:
    """Return `input`.

    Raises
    ------
    RuntimeError
        For a bool tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.positive(tp.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    _refuse_bool(input, "positive", "The `+` operator,")
    return input


@primitive("input", pointwise=True, inplace=True, aliases=("absolute",))
def abs(input: Tensor) -> Spec:
    """Return the absolute value of each element, of a complex one its magnitude as a real number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.abs(tp.tensor([-1.0, 2.0])), tp.abs(tp.tensor([3 + 4j]))
    (tensor([1., 2.]), tensor([5.]))
    """
    check_tensor(input, "abs")
    return elementwise("abs", input, result=input.dtype.to_real(), without=(BOOL,))


@primitive("input", pointwise=True, inplace=True)
def sign(input: Tensor) -> Spec:
    """Return -1, 0 or 1, as the element is negative, zero (or nan) or positive.

    Raises
    ------
    NotImplementedError
        For complex numbers: use ``sgn``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sign(tp.tensor([-3.0, 0.0, 7.0]))
    tensor([-1.,  0.,  1.])
    """
    check_tensor(input, "sign")
    if input.dtype.category == COMPLEX:
        raise NotImplementedError(
            "sign(): is not intended to support complex numbers; use sgn instead"
        )
    return elementwise("sign", input)


@composite(inplace=True)
def sgn(input: Tensor) -> Tensor:
    """Return the sign of each element, of a complex one the number of magnitude 1 of the same angle.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sgn(tp.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    check_tensor(input, "sgn")
    if input.dtype.category != COMPLEX:
        return sign(input)
    magnitude = abs(input)
    zero = _EQ.call(magnitude, 0)
    return _CHOOSE.call(zero, 0, true_divide(input, _CHOOSE.call(zero, 1, magnitude)))  # type: ignore[no-any-return]


_CHOOSE = handle("choose")
_EQ = handle("eq")


@primitive("input", pointwise=True, inplace=True)
def conj_physical(input: Tensor) -> Spec:
    """Return a new tensor with the complex conjugate of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.conj_physical(tp.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    check_tensor(input, "conj_physical")
    return elementwise("conj_physical", input)


@composite()
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate of each element; a real tensor is returned as it is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.conj(tp.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    check_tensor(input, "conj")
    return conj_physical(input) if input._kind.dtype.category == COMPLEX else input


@composite(inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Return the linear interpolation ``input + weight * (end - input)``.

    Parameters
    ----------
    input, end : Tensor
        Of one floating-point or complex dtype.
    weight : Tensor or number
        0 gives `input` and 1 gives `end`, exactly.

    Raises
    ------
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.lerp(tp.tensor([0.0, 10.0]), tp.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    check_tensor(input, "lerp")
    check_tensor(end, "lerp", "end")
    if end.dtype is not input.dtype:
        raise RuntimeError(
            f"lerp(): expected dtype {input.dtype.name} for `end` but got dtype {end.dtype.name}"
        )
    if input.dtype.category < FLOATING:
        raise NotImplementedError(f"lerp() is not implemented for dtype {input.dtype.name}")
    difference = sub(end, input)
    if not isinstance(weight, TensorBase):
        if -0.5 < weight.real < 0.5:
            return add(input, mul(difference, weight))
        return sub(end, mul(difference, 1 - weight))
    if weight.dtype is not input.dtype:
        if weight._shape:
            raise RuntimeError(
                f"lerp(): expected dtype {input.dtype.name} for `weight` but got dtype "
                f"{weight.dtype.name}"
            )
        weight = cast(weight, input.dtype)
    # Measured from the nearer end, so that both ends are met exactly.
    near = _LT.call(abs(weight), 0.5)
    reach = _CHOOSE.call(near, weight, sub(weight, 1))
    return add(_CHOOSE.call(near, input, end), mul(difference, reach))


_LT = handle("lt")


def _value_for(name: str, value: Number, compute: DType) -> Number:
    if compute.category <= INTEGER and not isinstance(value, int):
        return int(value.real)
    if isinstance(value, complex) and compute.category != COMPLEX:
        raise RuntimeError(
            f"{name}(): value cannot be converted to type {compute.name} without overflow: {value}"
        )
    return value


@composite(inplace=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addcmul(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    compute = result_dtype((input, tensor1, tensor2))
    if value != 1:
        tensor1 = mul(cast(tensor1, compute), _value_for("addcmul", value, compute))
    return add(input, mul(tensor1, tensor2))


@composite(inplace=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``.

    Raises
    ------
    RuntimeError
        If `tensor1` and `tensor2` are both of integers: choose with ``div(rounding_mode=...)`` what is
        meant.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.addcdiv(tp.tensor([1.0]), tp.tensor([2.0]), tp.tensor([4.0]), value=3)
    tensor([2.5000])
    """
    if result_dtype((tensor1, tensor2)).category < FLOATING:
        raise RuntimeError(
            "addcdiv(): Integer division with addcdiv is not supported; use "
            "(input + value * tp.div(tensor1, tensor2, rounding_mode='trunc')), or convert one tensor to a "
            "floating-point dtype for true division"
        )
    if value != 1:
        compute = result_dtype((input, tensor1, tensor2))
        tensor1 = mul(cast(tensor1, compute), _value_for("addcdiv", value, compute))
    return add(input, true_divide(tensor1, tensor2))


absolute = abs
divide = div
multiply = mul
negative = neg
subtract = sub
