"""Powers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import (
    BOOL,
    FLOATING,
    INTEGER,
    Number,
    complex128,
    float64,
    int64,
    result_dtype,
)
from ...dispatch.arguments import plain
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ...tensor.base import TensorBase
from ..rules import cast, check_tensor, elementwise

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "float_power",
    "pow",
    "square",
]


@primitive("input, exponent", pointwise=True, inplace=True, checked=True)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Spec:
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
    if (
        isinstance(input, TensorBase)
        and isinstance(exponent, int)
        and exponent < 0
        and input._key.dtype.category < FLOATING
    ):
        raise RuntimeError(
            f"pow(): Integers to negative integer powers are not allowed. Got a tensor of "
            f"{input.dtype.name} and exponent {exponent}; convert it to a floating-point dtype"
        )
    compute = result_dtype((input, exponent))
    limited = compute.category == INTEGER or compute.itemsize == 2
    exact = limited and isinstance(input, TensorBase)
    return elementwise("pow", input, exponent, compute=compute, exact=exact)


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
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return ``input ** exponent`` in float64, or in complex128 if either is complex.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.float_power(tp.tensor([2, 3]), 2).dtype
    tensorplug.float64
    """
    exponent = plain(exponent)
    compute = complex128 if result_dtype((input, exponent)).is_complex else float64
    if isinstance(input, TensorBase):
        input = cast(input, compute)
    if isinstance(exponent, TensorBase):
        exponent = cast(exponent, compute)
    elif compute is complex128 and not isinstance(exponent, complex):
        exponent = complex(exponent)
    return pow(input, exponent)


exact_out(
    float_power,
    said="the output given to {name} has dtype {kinds[1]} but the operation's result requires dtype "
    "{kinds[0]}",
)
