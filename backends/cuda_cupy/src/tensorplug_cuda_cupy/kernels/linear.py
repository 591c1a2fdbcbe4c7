"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import COMPLEXES, FLOATS, KernelTable

from .matmul import matmul, product_with_bias


def build(table: KernelTable) -> None:
    """Add the kernel to `table`."""
    table.add("linear", linear, dtypes=(*FLOATS, *COMPLEXES))


def linear(input: Any, weight: Any, bias: Any | None) -> Any:
    """Return ``input @ weight.T + bias``."""
    if bias is not None and bias.ndim == 1 and weight.ndim == 2 and input.ndim:
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        fused = product_with_bias(rows, weight.T, bias)
        if fused is not None:
            return fused.reshape(*input.shape[:-1], weight.shape[0])
    output = matmul(input, weight.T)
    if bias is None:
        return output
    if bias.ndim <= output.ndim:
        output += bias
        return output
    return output + bias
