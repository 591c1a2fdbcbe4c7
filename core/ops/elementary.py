"""Elementary functions: exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Integers and bool are computed in the default floating-point dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BOOL, COMPLEX, Number
from ..operators import Spec, primitive
from .rules import check_tensor, elementwise

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "relu",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


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


@primitive("input", pointwise=True, inplace=True)
def exp2(input: Tensor) -> Spec:
    """Return 2 to the power of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.exp2(tp.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    check_tensor(input, "exp2")
    return elementwise("exp2", input, floating=True)


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


@primitive("input", pointwise=True, inplace=True)
def log2(input: Tensor) -> Spec:
    """Return the logarithm to base 2 of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log2(tp.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    check_tensor(input, "log2")
    return elementwise("log2", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def log10(input: Tensor) -> Spec:
    """Return the logarithm to base 10 of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.log10(tp.tensor([1.0, 5.0]))
    tensor([0.0000, 0.6990])
    """
    check_tensor(input, "log10")
    return elementwise("log10", input, floating=True)


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


@primitive("input", pointwise=True, inplace=True)
def sin(input: Tensor) -> Spec:
    """Return the sine of each element, an angle in radians.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sin(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    check_tensor(input, "sin")
    return elementwise("sin", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def cos(input: Tensor) -> Spec:
    """Return the cosine of each element, an angle in radians.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cos(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    check_tensor(input, "cos")
    return elementwise("cos", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def tan(input: Tensor) -> Spec:
    """Return the tangent of each element, an angle in radians.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tan(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    check_tensor(input, "tan")
    return elementwise("tan", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arcsin",))
def asin(input: Tensor) -> Spec:
    """Return the angle in radians whose sine is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.asin(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    check_tensor(input, "asin")
    return elementwise("asin", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arccos",))
def acos(input: Tensor) -> Spec:
    """Return the angle in radians whose cosine is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.acos(tp.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """
    check_tensor(input, "acos")
    return elementwise("acos", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arctan",))
def atan(input: Tensor) -> Spec:
    """Return the angle in radians whose tangent is the element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atan(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    check_tensor(input, "atan")
    return elementwise("atan", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def sinh(input: Tensor) -> Spec:
    """Return the hyperbolic sine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sinh(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    check_tensor(input, "sinh")
    return elementwise("sinh", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def cosh(input: Tensor) -> Spec:
    """Return the hyperbolic cosine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cosh(tp.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    check_tensor(input, "cosh")
    return elementwise("cosh", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def tanh(input: Tensor) -> Spec:
    """Return the hyperbolic tangent of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tanh(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    check_tensor(input, "tanh")
    return elementwise("tanh", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arcsinh",))
def asinh(input: Tensor) -> Spec:
    """Return the inverse hyperbolic sine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.asinh(tp.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    check_tensor(input, "asinh")
    return elementwise("asinh", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arccosh",))
def acosh(input: Tensor) -> Spec:
    """Return the inverse hyperbolic cosine of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.acosh(tp.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    check_tensor(input, "acosh")
    return elementwise("acosh", input, floating=True)


@primitive("input", pointwise=True, inplace=True, aliases=("arctanh",))
def atanh(input: Tensor) -> Spec:
    """Return the inverse hyperbolic tangent of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atanh(tp.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    check_tensor(input, "atanh")
    return elementwise("atanh", input, floating=True)


@primitive("input, other", pointwise=True, inplace=True, aliases=("arctan2",))
def atan2(input: Tensor | Number, other: Tensor | Number) -> Spec:
    """Return the angle in radians of the point (x, y) = (other, input), between -pi and pi.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atan2(tp.tensor([1.0, -1.0]), tp.tensor([0.0, -1.0]))
    tensor([ 1.5708, -2.3562])
    """
    return elementwise("atan2", input, other, floating=True, without=(COMPLEX,))


@primitive("input", pointwise=True, inplace=True)
def sigmoid(input: Tensor) -> Spec:
    """Return the logistic function ``1 / (1 + exp(-input))`` of each element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sigmoid(tp.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """
    check_tensor(input, "sigmoid")
    return elementwise("sigmoid", input, floating=True)


@primitive("input", pointwise=True, inplace=True)
def relu(input: Tensor) -> Spec:
    """Return each element, or 0 where it is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.relu(tp.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    check_tensor(input, "relu")
    return elementwise("relu", input, without=(BOOL, COMPLEX))


arcsin = asin
arccos = acos
arctan = atan
arcsinh = asinh
arccosh = acosh
arctanh = atanh
arctan2 = atan2
