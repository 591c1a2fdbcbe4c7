"""How the ops of this package are differentiated, and batched.

``linear_int8`` needs no line here: its body consists of ops that have derivatives.
"""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import VmapInfo, derivative, linear, vmap_rule

from .ops import _matmul_int8


def _batched(info: VmapInfo, in_dims: tuple[Any, ...], input: Any, weight: Any) -> tuple[Any, int]:
    """Return the products of all samples at once."""
    input_dim, weight_dim = in_dims
    if input_dim is not None:
        input = input.movedim(input_dim, 0)
    if weight_dim is None:  # more rows for the same matrix
        return _matmul_int8(input, weight), 0
    if input_dim is None:
        input = input.expand(info.batch_size, *input.shape)
    rows = input.flatten(1, -2) if input.ndim > 2 else input.unsqueeze(1)
    product = rows @ weight.movedim(weight_dim, 0).to(input.dtype)
    return product.reshape(*input.shape[:-1], product.shape[-1]), 0


DERIVATIVES = [
    # Saves the 8-bit weight, and multiplies by it without writing it down in floating point either.
    derivative(
        "quant._matmul_int8",
        input=lambda g, weight: _matmul_int8(g, weight.t()),
        weight=None,
    ),
]

TANGENTS = [linear("quant._matmul_int8", "input")]

VMAP_RULES = [vmap_rule("quant._matmul_int8", _batched)]
