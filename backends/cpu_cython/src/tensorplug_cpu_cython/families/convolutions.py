"""Convolutions and linear layers, by oneDNN where it is installed, some by kernels of our own."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .. import depthwise, pointwise
from ..below import below
from ..library import onednn

_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    single = [dtype_named("float32")]
    half = [dtype_named("bfloat16")]
    if onednn is None:
        for name in _CONVOLUTIONS:
            table.add(name, _by_channel(name), dtypes=single)
        return
    from .. import attention, convolutions, products

    for linear, dtypes in ((products.linear, single), (products.half_linear, half)):
        table.add("linear", linear, dtypes=dtypes)
        table.add("linear_activation", _activated(linear), dtypes=dtypes)
    for name in _CONVOLUTIONS:
        onednn.fallbacks[name] = below(name)
        table.add(name, getattr(convolutions, name), dtypes=single)
        if onednn.has_bf16:
            table.add(name, getattr(onednn, name), dtypes=half)
    name = "scaled_dot_product_efficient_attention"
    table.add(name, attention.attention, dtypes=single)
    table.add(f"{name}_backward", attention.attention_backward, dtypes=single)


def _activated(linear: Any) -> Any:
    """Return a kernel that writes the activation of a linear map over it: no second array is gone through.

    oneDNN would compute both in one primitive, but its relu turns NaN into 0, and its gelu is NaN at
    infinity and off by 1.5e-4 elsewhere.
    """
    loops = {
        name: pointwise.Unary(name).call
        for name in ("relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu")
    }

    def linear_activation(input: Any, weight: Any, bias: Any, activation: str) -> Any:
        loop = loops.get(activation)
        if loop is None:
            raise ValueError(
                f"linear_activation(): activation must be one of {', '.join(loops)}, got {activation!r}"
            )
        product = linear(input, weight, bias)
        return loop(product, product)

    return linear_activation


def _by_channel(name: str) -> Any:
    """Return a kernel that convolves each channel by itself, and leaves all else to the one below."""
    compiled, lower = getattr(depthwise, name), below(name)

    def convolve(*arguments: Any) -> Any:
        found = compiled(*arguments)
        return lower(*arguments) if found is None else found

    return convolve
