"""Pointwise arithmetic: sums, products, signs, absolute values and conjugates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast as typed

from ...device.dtypes import BOOL, COMPLEX, INTEGER, DType, Number, result_dtype
from ...device.scalars import fitting, rounded
from ...dispatch.op_registry import Delegated, Spec, composite, defined_by, handle, primitive
from ...dispatch.out_dtypes import exact_out
from ...dispatch.state import dispatch_state
from ...tensor.base import TensorBase
from ...tensor.mirrors import conjugated
from ..rules import cast, check_tensor, elementwise, number, rounded_once, with_former_order

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "add",
    "conj",
    "conj_physical",
    "mul",
    "multiply",
    "neg",
    "negative",
    "positive",
    "rsub",
    "sgn",
    "sign",
    "sub",
    "subtract",
]


def _factor_first(input: Any, alpha: Any, other: Any) -> Any:
    return (input, other), {"alpha": number(alpha, "add", "alpha")}


@primitive("input, other", pointwise=True, inplace=True)
@with_former_order(_factor_first)
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
    return _sum(add, input, other, alpha)


def _is_bool(operand: Any) -> bool:
    if isinstance(operand, TensorBase):
        return operand._key.dtype.category == BOOL
    return isinstance(operand, bool)


@primitive("input, other", pointwise=True, inplace=True, aliases=("subtract",))
@with_former_order(_factor_first)
def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Spec:
    """Return ``input - alpha * other``.

    Raises
    ------
    RuntimeError
        If an operand is a bool or a bool tensor: use ``^`` or ``logical_xor``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sub(tp.tensor([3.0]), 1)
    tensor([2.])
    """
    check_not_bool(input, other)
    return _sum(sub, input, other, alpha)


def check_not_bool(input: Any, other: Any) -> None:
    """Refuse to subtract bools."""
    bools = [value for value in (input, other) if _is_bool(value)]
    if bools:
        which, instead = (
            ("two bool tensors", "Use the `^` or `logical_xor()` operator instead.")
            if len(bools) == 2
            else (
                "a bool tensor",
                "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
            )
        )
        raise RuntimeError(
            f"sub(): Subtraction, the `-` operator, with {which} is not supported. {instead}"
        )


def _check_scaled(input: Tensor, other: Tensor, alpha: Number) -> None:
    check_factor("add_scaled", result_dtype((input, other)), alpha)


@composite(shapes="input(*S), other(*S)", rule=_check_scaled, method=False, elementwise=True)
def add_scaled(input: Tensor, other: Tensor, alpha: Number) -> Tensor:
    """Return ``input + alpha * other`` of two tensors of one dtype and shape."""
    dtype = input._key.dtype
    if dtype.is_half:
        return rounded_once(add_scaled, dtype, input, other, alpha)
    return add(input, mul(other, alpha))


add.op.scaled = sub.op.scaled = add_scaled.op  # type: ignore[attr-defined]
sub.op.scaled_sign = -1  # type: ignore[attr-defined]


def check_factor(name: str, compute: DType, alpha: Number, argument: str = "alpha") -> None:
    """Raise unless a factor may multiply elements of a dtype."""
    if isinstance(alpha, bool) and compute.category != BOOL:
        raise RuntimeError(
            f"{name}(): Boolean {argument} only supported for Boolean results. Got {alpha}"
        )
    if compute.category <= INTEGER and not isinstance(alpha, int):
        raise RuntimeError(
            f"{name}(): For integral input tensors, argument {argument} must not be a floating point "
            f"number. Got {alpha}"
        )
    if isinstance(alpha, complex) and compute.category != COMPLEX:
        raise RuntimeError(
            f"{name}(): For non-complex input tensors, argument {argument} must not be a complex number. "
            f"Got {alpha}"
        )


def _sum(
    function: Callable[..., Any], input: Tensor | Number, other: Tensor | Number, alpha: Number
) -> Spec:
    """Return what ``add`` and ``sub`` come to."""
    name: str = function.op.name  # type: ignore[attr-defined]
    if type(alpha) is not int or alpha != 1:
        compute = result_dtype((input, other))
        check_factor(name, compute, alpha)
        alpha = fitting(alpha, compute)
        if alpha == 1:
            pass
        elif compute.is_half:
            return Delegated.to(_sum_once, function, compute, input, other, alpha)
        else:
            is_tensor = isinstance(other, TensorBase)
            other = mul(cast(other, compute), alpha) if is_tensor else other * alpha
    return elementwise(name, input, other, numbers=True)


def _sum_once(
    function: Callable[..., Any], half: DType, input: Any, other: Any, alpha: float
) -> Any:
    """Return a sum of half precision: its operands and the factor are rounded first, as in torch."""
    terms = [
        cast(term, half) if isinstance(term, TensorBase) else rounded(term, half)
        for term in (input, other)
    ]
    return rounded_once(function, half, *terms, alpha=rounded(alpha, half))


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


@primitive("input, other", pointwise=True, scales=True, inplace=True, aliases=("multiply",))
def mul(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return ``input * other``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mul(tp.tensor([[1.0], [2.0]]), tp.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return elementwise("mul", input, other, numbers=True, scaling=mul)


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
            f"{name}(): {what} on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )


@composite(view=True)
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
    """Return the sign of each element, of a complex one the number of magnitude 1 at its angle.

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
    return _WHERE.call(zero, 0, _DIVIDE.call(input, _WHERE.call(zero, 1, magnitude)))


_WHERE = handle("where")
_DIVIDE = handle("div")
_EQ = handle("eq")


@primitive("input", pointwise=True, inplace=True, name="conj_physical", method=False)
def conjugate_copy(input: Tensor) -> Spec:
    """Return a new tensor with the complex conjugate of each element; what :func:`conj_physical` calls.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1, dtype=tp.complex64).copy_(tp.tensor([1 + 2j])).conj_physical_()
    tensor([1.-2.j])
    """
    check_tensor(input, "conj_physical")
    return elementwise("conj_physical", input)


@defined_by(conjugate_copy)
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return a new tensor with the complex conjugate of each element; a real tensor is returned as it is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.conj_physical(tp.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if out is not None:
        call: Any = conjugate_copy
        return typed("Tensor", call(input, out=out))
    check_tensor(input, "conj_physical")
    return conjugate_copy(input) if input._key.dtype.category == COMPLEX else input


dispatch_state.add_method("conj_physical", conj_physical)


@composite(reads_layout=True)  # of whose memory it is the conjugate
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate of each element; a real tensor is returned as it is.

    What is written to a complex tensor or to its conjugate is seen in both, as with a view.
    :func:`conj_physical` returns a tensor of its own.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.conj(tp.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    check_tensor(input, "conj")
    return conjugated(input) if input._key.dtype.category == COMPLEX else input


absolute = abs
multiply = mul
negative = neg
subtract = sub


exact_out(abs, sgn, conjugate_copy, neg, sign)
