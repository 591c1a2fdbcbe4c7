"""The affine map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.operators import composite

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias`` over the last dimension.

    Parameters
    ----------
    input : Tensor
        (*, in_features).
    weight : Tensor
        (out_features, in_features), or (in_features,).
    bias : Tensor, optional
        (out_features,), or ().

    Returns
    -------
    Tensor
        (*, out_features), or (*) for a one-dimensional weight.
    """
    output = input @ (weight if weight.ndim == 1 else weight.t())
    return output if bias is None else output + bias


def _flat(x: Any, last: int) -> Any:
    if x.ndim == 2:
        return x
    return x.reshape(math.prod(x.shape[:-1]), last)  # not -1: there may be no features


def _input_gradient(g: Any, weight: Any, input_shape: Any) -> Any:
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight.conj()
    gradient = _flat(g, weight.shape[0]) @ weight.conj()
    return gradient if g.ndim == 2 else gradient.reshape(input_shape)


def _weight_gradient(g: Any, input: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return _flat(input.conj() * g.unsqueeze(-1), weight_shape[0]).sum(0)
    return _flat(g, weight_shape[0]).t() @ _flat(input.conj(), weight_shape[1])


def _bias_gradient(g: Any, bias_shape: Any) -> Any:
    return g.sum_to_size(bias_shape)


DERIVATIVES = [
    derivative("linear", input=_input_gradient, weight=_weight_gradient, bias=_bias_gradient),
]
