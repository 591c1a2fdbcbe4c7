"""Linear maps: Identity, Linear, Bilinear."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty

from .. import functional as F, init
from ..module import Module
from ..ops.linear import linear_activation
from ..parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Return the input; arguments are accepted and ignored.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Identity(54, unused=True)(tp.ones(1))
    tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`."""
        return input


class Linear(Module):
    r"""The affine map :math:`y = x A^T + b` over the last dimension.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of input and output.
    bias : bool
        Whether there is a :math:`b`.
    device : Device or str, optional
        Where the parameters are made.
    dtype : DType, optional
        Their dtype.

    Attributes
    ----------
    weight : Parameter
        :math:`A`, of shape (out_features, in_features); from
        :math:`U(-\sqrt{k}, \sqrt{k})` with :math:`k = 1 / in\_features`.
    bias : Parameter or None
        :math:`b`, of shape (out_features,); from the same distribution.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Linear(20, 30)(tp.zeros(128, 20)).shape
    Size([128, 30])
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the map of `input`, of shape (..., in_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


#: The activations, as functions, that are computed along with a linear map.
_ALONG: tuple[tuple[Callable[..., Tensor], str], ...] = (
    (F.relu, "relu"),
    (F.gelu, "gelu"),
    (F.silu, "silu"),
    (F.tanh, "tanh"),
    (F.sigmoid, "sigmoid"),
)


def activated(layer: Module, activation: Callable[[Tensor], Tensor], input: Any) -> Tensor:
    """Return ``activation(layer(input))``, in one op where nobody is there to see what lies between.

    What does not fit goes the usual way, which says why.
    """
    for function, name in _ALONG:
        if activation is function and type(layer) is Linear and not layer._has_hooks():
            weight, bias = layer.weight, layer.bias
            if "forward" not in layer.__dict__ and _fit(input, weight, bias):
                return linear_activation(input, weight, bias, name)
    return activation(layer(input))


def _fit(input: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return (
        input._key is weight._key
        and input._shape[-1:] == weight._shape[1:]
        and (bias is None or (bias._key is weight._key and bias._shape == weight._shape[:1]))
    )


class NonDynamicallyQuantizableLinear(Linear):
    """:class:`Linear`, under the name that the projection of attention has in torch's listings."""


class Bilinear(Module):
    r"""The map :math:`y_k = x_1^T A_k x_2 + b_k` over the last dimensions of two inputs.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the last dimension of the inputs and the output.
    bias : bool
        Whether there is a :math:`b`.
    device : Device or str, optional
        Where the parameters are made.
    dtype : DType, optional
        Their dtype.

    Raises
    ------
    ValueError
        If `in1_features` is not positive.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Bilinear(2, 3, 4)(tp.zeros(5, 2), tp.zeros(5, 3)).shape
    Size([5, 4])
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            empty(out_features, in1_features, in2_features, device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the map of (..., in1_features) and (..., in2_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
