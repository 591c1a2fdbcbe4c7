"""Bitwise and logical ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..device.dtypes import BOOL, COMPLEX, FLOATING, Number
from ..dispatch.op_registry import Spec, composite, handle, primitive
from ..dispatch.out_dtypes import exact_out
from ..tensor.base import TensorBase
from .rules import check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]

_NO_BITS = (FLOATING, COMPLEX)
_NO_SHIFT = (BOOL, FLOATING, COMPLEX)


@primitive("input, other", pointwise=True, inplace=True)
def bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the bitwise and of integers, the logical one of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_and(tp.tensor([1, 3]), tp.tensor([3, 2]))
    tensor([1, 2])
    """
    return elementwise("bitwise_and", input, other, without=_NO_BITS)


@primitive("input, other", pointwise=True, inplace=True)
def bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the bitwise or of integers, the logical one of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_or(tp.tensor([1, 3]), tp.tensor([3, 2]))
    tensor([3, 3])
    """
    return elementwise("bitwise_or", input, other, without=_NO_BITS)


@primitive("input, other", pointwise=True, inplace=True)
def bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the bitwise exclusive or of integers, the logical one of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_xor(tp.tensor([1, 3]), tp.tensor([3, 2]))
    tensor([2, 1])
    """
    return elementwise("bitwise_xor", input, other, without=_NO_BITS)


@primitive("input", pointwise=True, inplace=True)
def bitwise_not(input: Tensor) -> Spec:
    """Return each integer with its bits inverted, the logical not of bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_not(tp.tensor([0, 1]))
    tensor([-1, -2])
    """
    check_tensor(input, "bitwise_not")
    return elementwise("bitwise_not", input, without=_NO_BITS)


@primitive("input, other", pointwise=True, inplace=True)
def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return ``input << other``: 0 where `other` is negative or at least the number of bits.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_left_shift(tp.tensor([1, 3]), tp.tensor([2, 1]))
    tensor([4, 6])
    """
    return elementwise("bitwise_left_shift", input, other, without=_NO_SHIFT)


@primitive("input, other", pointwise=True, inplace=True)
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return ``input >> other``, arithmetically: negative numbers stay negative.

    Where `other` is negative or at least the number of bits, the result is 0, or -1 of a negative
    number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bitwise_right_shift(tp.tensor([4, -6]), tp.tensor([2, 1]))
    tensor([ 1, -3])
    """
    return elementwise("bitwise_right_shift", input, other, without=_NO_SHIFT)


_EQ = handle("eq")
_NE = handle("ne")


def _truth(value: Tensor | Number, name: str, argument: str) -> Tensor | bool:
    """Return where the elements are not zero."""
    if not isinstance(value, TensorBase):
        check_tensor(value, name, argument)
    return value if value._key.dtype.category == BOOL else _NE.call(value, 0)  # type: ignore[union-attr, return-value]


@composite(inplace=True)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Return where both elements are true, that is, not zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logical_and(tp.tensor([1, 2, 0]), tp.tensor([3, 0, 0]))
    tensor([ True, False, False])
    """
    return bitwise_and(_truth(input, "logical_and", "input"), _truth(other, "logical_and", "other"))


@composite(inplace=True)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Return where either element is true, that is, not zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logical_or(tp.tensor([1, 2, 0]), tp.tensor([3, 0, 0]))
    tensor([ True,  True, False])
    """
    return bitwise_or(_truth(input, "logical_or", "input"), _truth(other, "logical_or", "other"))


@composite(inplace=True)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Return where exactly one element is true, that is, not zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logical_xor(tp.tensor([1, 2, 0]), tp.tensor([3, 0, 0]))
    tensor([False,  True, False])
    """
    return bitwise_xor(_truth(input, "logical_xor", "input"), _truth(other, "logical_xor", "other"))


@composite(inplace=True)
def logical_not(input: Tensor) -> Tensor:
    """Return where an element is zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logical_not(tp.tensor([1.5, 0.0]))
    tensor([False,  True])
    """
    check_tensor(input, "logical_not")
    return bitwise_not(input) if input._key.dtype.category == BOOL else _EQ.call(input, 0)


exact_out(bitwise_not)
