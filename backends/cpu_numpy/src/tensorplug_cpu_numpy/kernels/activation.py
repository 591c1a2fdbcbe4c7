"""Activations of several steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

from .special import special

Array = np.ndarray[Any, Any]

_ROOT = math.sqrt(2 / math.pi)


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    table.add("gelu", gelu, dtypes=(dtype_named("float32"), dtype_named("float64")))
    table.add("gelu", namespace.through_float32(gelu), dtypes=halves)


def gelu(input: Array, approximate: str) -> Any:
    """Return x times the normal distribution's function of x, or that by tanh."""
    if approximate == "tanh":
        inner = _ROOT * (input + 0.044715 * input * input * input)
        return input / (
            1 + np.exp(-2 * inner)
        )  # (1 + tanh(inner)) / 2, which keeps its digits below 0
    return input * 0.5 * special.erfc(input * -math.sqrt(0.5))
