"""Linear layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.plugin import COMPLEXES, FLOATS, KernelTable

from ..libraries import cublaslt
from . import activation as activations
from .matmul import matmul, product_with_bias


def build(table: KernelTable) -> None:
    """Add the kernels to `table`."""
    table.add("linear", linear, dtypes=(*FLOATS, *COMPLEXES))
    table.add("linear_activation", linear_activation, dtypes=FLOATS)


def linear(input: Any, weight: Any, bias: Any | None) -> Any:
    """Return ``input @ weight.T + bias``."""
    if bias is not None:
        fused = _in_one(input, weight, bias, "")
        if fused is not None:
            return fused
    output = matmul(input, weight.T)
    if bias is None:
        return output
    if bias.ndim <= output.ndim:
        output += bias
        return output
    return output + bias


def linear_activation(input: Any, weight: Any, bias: Any | None, activation: str) -> Any:
    """Return an activation of :func:`linear`."""
    if activation in cublaslt.ACTIVATIONS:
        fused = _in_one(input, weight, bias, activation)
        if fused is not None:
            return fused
    return _ACTIVATIONS[activation](linear(input, weight, bias))


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: activations.relu(x, x),
    "tanh": activations.activation("hyperbolic_tangent"),
    "sigmoid": activations.activation("logistic"),
    "gelu": lambda x: activations.gelu(x, "none"),
    "gelu_tanh": lambda x: activations.gelu(x, "tanh"),
    "silu": activations.silu,
}


def _in_one(input: Any, weight: Any, bias: Any | None, activation: str) -> Any | None:
    """Return the layer in one kernel of cuBLASLt, or None where none serves."""
    if weight.ndim != 2 or not input.ndim or (bias is not None and bias.ndim != 1):
        return None
    rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    fused = product_with_bias(rows, weight.T, bias, activation)
    return None if fused is None else fused.reshape(*input.shape[:-1], weight.shape[0])
