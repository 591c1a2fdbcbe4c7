"""Activations, applied element by element."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import defined_by
from tensorplug.core.dispatch.overrides import taken_over
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.dispatch.writes import inplace as write_in_place
from tensorplug.core.ops import relu as _relu, sigmoid as _sigmoid, tanh as _tanh

from ..ops import activation as ops
from ..ops.activation import (
    gelu,
    glu,
    hardshrink,
    logsigmoid,
    prelu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
)
from ._common import tensor

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _written(function: Any, input: Tensor, *options: Any) -> Tensor:
    """Write ``function(input, *options)``, of an op, into the input."""
    op = function.op
    result: Tensor = write_in_place(op, f"{op.name}_", input, options, {})
    return result


@defined_by(_relu)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(0, x)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> relu(tp.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if dispatch_state.layers_active or not isinstance(input, Tensor):
        made = taken_over(relu, (input,), {"inplace": inplace})
        if made is not None:
            return made[0]
        tensor(input, "relu")
    return input.relu_() if inplace else _relu(input)


@defined_by(_relu)
def relu_(input: Tensor) -> Tensor:
    """Return :func:`relu`, in place."""
    return relu(input, True)


@defined_by(ops.relu6)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(0, x), 6)``."""
    return _written(ops.relu6, input) if inplace else ops.relu6(input)


@defined_by(ops.hardtanh)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return `input` cut off at `min_val` and `max_val`.

    Raises
    ------
    ValueError
        If `min_val` is above `max_val`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> hardtanh(tp.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(
            f"hardtanh(): min_val cannot be greater than max_val, got {min_val} and {max_val}"
        )
    return hardtanh_(input, min_val, max_val) if inplace else ops.hardtanh(input, min_val, max_val)


@defined_by(ops.hardtanh)
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Return :func:`hardtanh`, in place; a bound below the other wins, as in :func:`clamp`."""
    return _written(ops.hardtanh, input, min_val, max_val)


@defined_by(ops.leaky_relu)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``negative_slope * x``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> leaky_relu(tp.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    if inplace:
        return _written(ops.leaky_relu, input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


@defined_by(ops.leaky_relu)
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Return :func:`leaky_relu`, in place."""
    return leaky_relu(input, negative_slope, True)


@defined_by(ops.rrelu)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return :func:`leaky_relu` with a random slope per element in training, else the mean slope.

    Raises
    ------
    RuntimeError
        If `lower` is above `upper`.
    """
    if inplace:
        return _written(ops.rrelu, input, lower, upper, training)
    return ops.rrelu(input, lower, upper, training)


@defined_by(ops.rrelu)
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Return :func:`rrelu`, in place."""
    return rrelu(input, lower, upper, training, True)


@defined_by(ops.elu)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x) - 1)``."""
    return _written(ops.elu, input, alpha) if inplace else ops.elu(input, alpha)


@defined_by(ops.elu)
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return :func:`elu`, in place."""
    return elu(input, alpha, True)


@defined_by(ops.selu)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return :func:`elu`, scaled so that mean 0 and variance 1 reproduce themselves."""
    return _written(ops.selu, input) if inplace else ops.selu(input)


@defined_by(ops.selu)
def selu_(input: Tensor) -> Tensor:
    """Return :func:`selu`, in place."""
    return selu(input, True)


@defined_by(ops.celu)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Raises
    ------
    RuntimeError
        If `alpha` is zero.
    """
    return _written(ops.celu, input, alpha) if inplace else ops.celu(input, alpha)


@defined_by(ops.celu)
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return :func:`celu`, in place."""
    return celu(input, alpha, True)


@defined_by(ops.silu)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * sigmoid(x)``."""
    return _written(ops.silu, input) if inplace else ops.silu(input)


@defined_by(ops.mish)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * tanh(softplus(x))`` (Misra 2019)."""
    return _written(ops.mish, input) if inplace else ops.mish(input)


@defined_by(ops.hardswish)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * hardsigmoid(x)`` (Howard et al. 2019)."""
    return _written(ops.hardswish, input) if inplace else ops.hardswish(input)


@defined_by(ops.hardsigmoid)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``(x + 3) / 6``, cut off at 0 and 1."""
    return _written(ops.hardsigmoid, input) if inplace else ops.hardsigmoid(input)


@defined_by(_sigmoid)
def sigmoid(input: Tensor) -> Tensor:
    """Return ``1 / (1 + exp(-x))``."""
    tensor(input, "sigmoid")
    return input.sigmoid()


@defined_by(_tanh)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    tensor(input, "tanh")
    return input.tanh()


@defined_by(ops.threshold)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above `threshold`, else `value`."""
    if inplace:
        return _written(ops.threshold, input, threshold, value)
    return ops.threshold(input, threshold, value)


@defined_by(ops.threshold)
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return the function `threshold`, in place."""
    return _written(ops.threshold, input, threshold, value)
