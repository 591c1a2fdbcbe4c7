"""Trigonometric and hyperbolic functions that are written in other elementary functions.

A backend may register a kernel for any of them all the same. The formulas are accurate to a few
units in the last place; those of complex numbers work on the parts, after Kahan, *Branch Cuts for
Complex Elementary Functions*, 1987.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import COMPLEX, FLOATING, finfo
from ...dispatch.op_registry import composite
from ..arithmetic.division import div
from ..arithmetic.pointwise import abs, add, mul, neg, sub
from ..comparison import gt, lt
from ..complex import complex, imag, real
from ..masking import where
from ..numeric import copysign
from ..rules import cast, check_tensor, to_floating
from .circular import atan2, cos, sin, tanh
from .exponential import exp, expm1, log, log1p, sqrt

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cosh",
    "sinh",
    "tan",
]

_LN2 = math.log(2)


@composite(inplace=True)
def tan(input: Tensor) -> Tensor:
    """Return the tangent of each element, an angle in radians.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tan(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    check_tensor(input, "tan")
    if input.dtype.category < FLOATING:
        return tan(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        t, h = tan(real(input)), tanh(imag(input))
        below = add(1, mul(mul(t, t), mul(h, h)))
        slope = div(1, cosh(imag(input)))  # 1 - h * h would cancel
        return complex(
            div(mul(t, mul(slope, slope)), below),
            div(mul(h, add(1, mul(t, t))), below),
        )
    return div(sin(input), cos(input))


@composite(inplace=True, aliases=("arcsin",))
def asin(input: Tensor) -> Tensor:
    """Return the angle in radians whose sine is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.asin(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    check_tensor(input, "asin")
    if input.dtype.category < FLOATING:
        return asin(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        x, below, above = real(input), sqrt(sub(1, input)), sqrt(add(1, input))
        return complex(atan2(x, real(mul(below, above))), asinh(imag(mul(below._conj(), above))))
    return atan2(input, sqrt(mul(sub(1, input), add(1, input))))


@composite(inplace=True, aliases=("arccos",))
def acos(input: Tensor) -> Tensor:
    """Return the angle in radians whose cosine is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.acos(tp.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """
    check_tensor(input, "acos")
    if input.dtype.category < FLOATING:
        return acos(cast(input, to_floating(input.dtype)))
    below, above = sqrt(sub(1, input)), sqrt(add(1, input))
    if input.dtype.category == COMPLEX:
        return complex(
            mul(2, atan2(real(below), real(above))), asinh(imag(mul(above._conj(), below)))
        )
    return mul(2, atan2(below, above))


@composite(inplace=True, aliases=("arctan",))
def atan(input: Tensor) -> Tensor:
    """Return the angle in radians whose tangent is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atan(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    check_tensor(input, "atan")
    if input.dtype.category < FLOATING:
        return atan(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        turned = atanh(complex(neg(imag(input)), real(input)))
        return complex(imag(turned), neg(real(turned)))
    return atan2(input, 1)


@composite(inplace=True)
def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sinh(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    check_tensor(input, "sinh")
    if input.dtype.category < FLOATING:
        return sinh(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        x, y = real(input), imag(input)
        return complex(mul(sinh(x), cos(y)), mul(cosh(x), sin(y)))
    size = abs(input)
    less = expm1(size)
    root = exp(mul(size, 0.5))  # its square may overflow where half of that does not
    small = mul(add(less, div(less, add(less, 1))), 0.5)
    large = sub(mul(mul(root, 0.5), root), div(div(0.5, root), root))
    return copysign(where(lt(size, 1), small, large), input)


@composite(inplace=True)
def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cosh(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    check_tensor(input, "cosh")
    if input.dtype.category < FLOATING:
        return cosh(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        x, y = real(input), imag(input)
        return complex(mul(cosh(x), cos(y)), mul(sinh(x), sin(y)))
    root = exp(mul(abs(input), 0.5))  # its square may overflow where half of that does not
    return add(mul(mul(root, 0.5), root), div(div(0.5, root), root))


@composite(inplace=True, aliases=("arcsinh",))
def asinh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.asinh(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    check_tensor(input, "asinh")
    if input.dtype.category < FLOATING:
        return asinh(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        turned = asin(complex(neg(imag(input)), real(input)))
        return complex(imag(turned), neg(real(turned)))
    size = abs(input)
    square = mul(size, size)
    small = log1p(add(size, div(square, add(1, sqrt(add(1, square))))))
    return copysign(where(_huge(size), add(log(size), _LN2), small), input)


@composite(inplace=True, aliases=("arccosh",))
def acosh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.acosh(tp.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    check_tensor(input, "acosh")
    if input.dtype.category < FLOATING:
        return acosh(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        below, above = sqrt(sub(input, 1)), sqrt(add(input, 1))
        return complex(
            asinh(real(mul(below._conj(), above))), mul(2, atan2(imag(below), real(above)))
        )
    beyond = sub(input, 1)
    small = log1p(add(beyond, mul(sqrt(beyond), sqrt(add(input, 1)))))
    return where(_huge(input), add(log(input), _LN2), small)


@composite(inplace=True, aliases=("arctanh",))
def atanh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atanh(tp.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    check_tensor(input, "atanh")
    if input.dtype.category < FLOATING:
        return atanh(cast(input, to_floating(input.dtype)))
    if input.dtype.category == COMPLEX:
        x, y = real(input), imag(input)
        size, square = abs(x), mul(y, y)
        rest = sub(1, size)
        growth = log1p(div(mul(4, size), add(mul(rest, rest), square)))
        turn = atan2(mul(2, y), sub(mul(rest, add(1, size)), square))
        return complex(copysign(mul(0.25, growth), x), mul(0.5, turn))
    size = abs(input)
    return copysign(mul(0.5, log1p(div(mul(2, size), sub(1, size)))), input)


def _huge(value: Any) -> Any:
    """Return where the square of a number is so large that adding 1 changes nothing."""
    return gt(value, finfo(value.dtype).eps ** -0.5)


arcsin = asin
arccos = acos
arctan = atan
arcsinh = asinh
arccosh = acosh
arctanh = atanh
