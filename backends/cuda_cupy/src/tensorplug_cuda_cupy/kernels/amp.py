"""The gradient scaler's ops: nothing of them waits for the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable, dtype_named

from .. import sources
from .._cupy import cp
from ..dtypes import name_of
from .optimizers.fused import batches


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    table.add("amp.unscale", unscale, dtypes=FLOATS)
    table.add("amp.update_scale", update_scale, dtypes=[dtype_named("float32")])


def unscale(grads: list[Any], found_inf: Any, inverse: Any) -> None:
    """Multiply gradients by a number on the device, and set `found_inf` where one is not finite."""
    dense = [cp.ascontiguousarray(grad) for grad in grads]
    for batch, blocks in batches([dense], {}):
        arguments = (batch, found_inf, inverse)
        sources.launch("amp", "unscale", name_of(grads[0]), blocks, arguments)
    for grad, copy in zip(grads, dense, strict=True):
        if not grad.flags.c_contiguous:
            grad[...] = copy


def update_scale(
    scale: Any,
    growth_tracker: Any,
    found_inf: Any,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> None:
    """Lower the scale after a step that was skipped, raise it after many that were not."""
    numbers = (np.float64(growth_factor), np.float64(backoff_factor), np.int32(growth_interval))
    arguments = (scale, growth_tracker, found_inf, *numbers)
    sources.launch("amp", "update_scale", "float32", 1, arguments)
