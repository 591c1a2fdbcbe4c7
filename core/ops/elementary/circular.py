"""Sine, cosine, tanh and atan2, in which :mod:`.trigonometry` is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import COMPLEX, Number
from ...dispatch.op_registry import Spec, primitive
from ..rules import check_tensor, elementwise

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["arctan2", "atan2", "cos", "sin", "tanh"]


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


arctan2 = atan2
