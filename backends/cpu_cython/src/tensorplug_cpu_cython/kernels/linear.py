"""Linear layers, by oneDNN where it is installed."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable, dtype_named

from .. import pointwise
from ..halves import in_single
from ..library import onednn


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    if onednn is None:
        return
    from .. import matmul

    for dtype, linear in (
        ("float32", matmul.linear),
        ("bfloat16", matmul.half_linear),
        ("float16", in_single(matmul.linear)),
    ):
        table.add("linear", linear, dtypes=[dtype_named(dtype)])
        table.add("linear_activation", _activated(linear), dtypes=[dtype_named(dtype)])


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
