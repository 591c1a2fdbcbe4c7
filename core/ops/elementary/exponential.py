"""Exponentials, logarithms and roots.

Integers and bool are computed in the default floating-point dtype.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...device.dtypes import COMPLEX, FLOATING
from ...dispatch.op_registry import Spec, composite, handle, primitive
from ..arithmetic.division import div
from ..arithmetic.pointwise import mul
from ..arithmetic.powers import pow
from ..rules import cast, check_tensor, elementwise, to_floating

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "rsqrt", "sqrt"]

_COMPLEX, _REAL, _IMAG = handle("complex"), handle("real"), handle("imag")

_LN2 = math.log(2)
_LN10 = math.log(10)


@primitive("input", pointwise=True, inplace=True)
def sqrt(input: Tensor) -> Spec:
    """Return the square root of each element; nan of a negative real one.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sqrt(tp.tensor([1.0, 4.0]))
    tensor([1., 2.])
    """
    check_tensor(input, "sqrt")
    return elementwise("sqrt", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def rsqrt(input: Tensor) -> Spec:
    """Return one divided by the square root of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rsqrt(tp.tensor([1.0, 4.0]))
    tensor([1.0000, 0.5000])
    """
    check_tensor(input, "rsqrt")
    return elementwise("rsqrt", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def exp(input: Tensor) -> Spec:
    """Return *e* to the power of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.exp(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    check_tensor(input, "exp")
    return elementwise("exp", input, floating=True)


@composite(inplace=True)
def exp2(input: Tensor) -> Tensor:
    """Return 2 to the power of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.exp2(tp.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    check_tensor(input, "exp2")
    if input.dtype.category < FLOATING:
        return exp2(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX and input.dtype.itemsize > 4:
        # By parts: a product with a complex ln 2 would make NaN of what is infinite.
        real, imag = [mul(part.call(input), _LN2) for part in (_REAL, _IMAG)]
        return exp(_COMPLEX.call(real, imag))
    return pow(2.0, input)


@primitive("input", pointwise=True, inplace=True)
def expm1(input: Tensor) -> Spec:
    """Return ``exp(input) - 1``, accurate near zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.expm1(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    check_tensor(input, "expm1")
    return elementwise("expm1", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def log(input: Tensor) -> Spec:
    """Return the natural logarithm of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log(tp.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    check_tensor(input, "log")
    return elementwise("log", input, floating=True)


@composite(inplace=True)
def log2(input: Tensor) -> Tensor:
    """Return the logarithm to base 2 of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log2(tp.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    check_tensor(input, "log2")
    if input.dtype.category < FLOATING:
        return log2(cast(input, to_floating(input.dtype)))
    return div(log(input), _LN2)


@composite(inplace=True)
def log10(input: Tensor) -> Tensor:
    """Return the logarithm to base 10 of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log10(tp.tensor([1.0, 5.0]))
    tensor([0.0000, 0.6990])
    """
    check_tensor(input, "log10")
    if input.dtype.category < FLOATING:
        return log10(cast(input, to_floating(input.dtype)))
    return div(log(input), _LN10)


@primitive("input", pointwise=True, inplace=True)
def log1p(input: Tensor) -> Spec:
    """Return ``log(1 + input)``, accurate near zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log1p(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    check_tensor(input, "log1p")
    return elementwise("log1p", input, floating=True)
