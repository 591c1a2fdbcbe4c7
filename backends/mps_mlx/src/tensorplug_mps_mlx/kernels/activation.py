"""Kernels of activations, each one kernel of the GPU."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import ArrayApiBackend

from .._mlx import mx
from ..dtypes import FLOAT32, FLOATS, HALVES
from .fusing import fused
from .halves import through_float32

_SLOPE = math.sqrt(2 / math.pi)


@fused
def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + mx.erf(x * math.sqrt(0.5)))


@fused
def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + mx.tanh(_SLOPE * (x + 0.044715 * x * x * x)))


@fused
def _gelu_backward(g: Any, x: Any) -> Any:
    density = mx.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + mx.erf(x * math.sqrt(0.5))) + x * density)


@fused
def _gelu_tanh_backward(g: Any, x: Any) -> Any:
    t = mx.tanh(_SLOPE * (x + 0.044715 * x * x * x))
    inner = _SLOPE * (1 + 3 * 0.044715 * x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


@fused
def silu(input: Any) -> Any:
    """Return x sigmoid(x)."""
    return input * mx.sigmoid(input)


@fused
def silu_backward(g: Any, input: Any) -> Any:
    """Return the gradient of :func:`silu`."""
    s = mx.sigmoid(input)
    return g * (s * (1 + input * (1 - s)))


def gelu(input: Any, approximate: str) -> Any:
    """Return x times the normal distribution function of x, or what tanh makes of it."""
    return _gelu_tanh(input) if approximate == "tanh" else _gelu(input)


def gelu_backward(g: Any, input: Any, approximate: str) -> Any:
    """Return the gradient of :func:`gelu`."""
    return _gelu_tanh_backward(g, input) if approximate == "tanh" else _gelu_backward(g, input)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    plugin.kernel("relu", dtypes=FLOATS)(lambda input: mx.maximum(input, 0))
    for name, function in (
        ("gelu", gelu),
        ("gelu_backward", gelu_backward),
        ("silu", silu),
        ("silu_backward", silu_backward),
    ):
        plugin.kernel(name, dtypes=(FLOAT32,))(function)
        plugin.kernel(name, dtypes=HALVES)(through_float32(function))
