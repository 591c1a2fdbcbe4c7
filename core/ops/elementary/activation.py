"""Sigmoid and ReLU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device.dtypes import BOOL, COMPLEX
from ...dispatch.op_registry import Spec, composite, primitive
from ..comparison import le
from ..masking import where
from ..rules import check_tensor, elementwise

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["relu", "sigmoid"]


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


@composite(method=False, elementwise=True)
def relu_backward(g: Tensor, result: Tensor) -> Tensor:
    """Return the gradient of relu's input, from that of its result and the result."""
    return where(le(result, 0), 0, g)


@composite(method=False, elementwise=True)
def sigmoid_backward(g: Tensor, result: Tensor) -> Tensor:
    """Return the gradient of sigmoid's input, from that of its result and the result."""
    return g * (result * (1 - result))._conj()


@composite(method=False, elementwise=True)
def tanh_backward(g: Tensor, result: Tensor) -> Tensor:
    """Return the gradient of tanh's input, from that of its result and the result."""
    return g * (1 - result * result)._conj()
