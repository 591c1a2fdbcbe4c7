"""Pointwise arithmetic and elementary functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BOOL, Number
from ..operators import Spec, primitive
from ..tensor_base import TensorBase
from .rules import elementwise

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["add", "conj", "exp", "mul", "neg", "sub"]


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
    return elementwise("add", input, _scaled(other, alpha))


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
    return elementwise("sub", input, _scaled(other, alpha))


def _scaled(other: Tensor | Number, alpha: Number) -> Tensor | Number:
    if alpha == 1:
        return other
    if (
        isinstance(alpha, float)
        and isinstance(other, TensorBase)
        and other._kind.dtype.category < 2
    ):
        raise RuntimeError(
            f"For integral input tensors, argument alpha must not be a floating point number, got {alpha}"
        )
    return mul(other, alpha) if isinstance(other, TensorBase) else other * alpha


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


@primitive("input", pointwise=True, inplace=True)
def exp(input: Tensor) -> Spec:
    """Return *e* to the power of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.exp(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return elementwise("exp", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("negative",))
def neg(input: Tensor) -> Spec:
    """Return the negative of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> -tp.tensor([1.0, -2.0])
    tensor([-1.,  2.])
    """
    return elementwise("neg", input)


@primitive("input", pointwise=True)
def conj(input: Tensor) -> Spec:
    """Return the complex conjugate of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.conj(tp.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return elementwise("conj", input)
