"""Max and average pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named

from .. import indexing_gather, pointwise, pooling_adaptive, pooling_average, pooling_max
from .._dtypes import FLOATS, WHOLE
from ..below import below
from ..halves import add_floats

_WHOLE = np.dtype(np.int64)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("max_pool", "max_pool_backward"):
        table.add(name, getattr(pooling_max, name), dtypes=FLOATS)

    for count in (1, 2, 3):  # without the places, unless a gradient or the program wants them
        table.add(f"max_pool{count}d", pooling_max.max_pool_values, dtypes=FLOATS)

    @table.kernel("max_pool", dtypes=WHOLE)
    def max_pool_of_whole(input: Any, *options: Any) -> Any:
        *_, dilation, _ = options
        if max(dilation) == 1 or input.dtype == np.int64:
            return pooling_max.max_pool(input, *options)
        # A window may then lie in the padding alone, where the least number of its dtype stands.
        values, places = pooling_max.max_pool(pointwise.cast(input, _WHOLE), *options)
        values = np.maximum(values, np.iinfo(input.dtype).min)
        return pointwise.cast(values, input.dtype), places

    for name in (
        "avg_pool",
        "avg_pool_backward",
        "adaptive_avg_pool",
        "adaptive_avg_pool_backward",
    ):
        table.add(name, getattr(pooling_average, name), dtypes=FLOATS)
    table.add("avg_pool", pooling_average.avg_pool, dtypes=[dtype_named("int64")])
    both = pooling_adaptive.adaptive_max_pool

    def values(input: Any, output_size: tuple[int, ...]) -> Any:
        return both(input, output_size)[0]

    for count in (1, 2, 3):
        add_floats(table, f"adaptive_max_pool{count}d", values)
        add_floats(table, f"adaptive_max_pool{count}d_with_indices", both)
    fractional = pooling_adaptive.fractional_max_pool

    def at_random_steps(
        input: Any, kernel_size: tuple[int, ...], output_size: tuple[int, ...], samples: Any
    ) -> Any:
        return fractional(input, kernel_size, output_size, samples)[0]

    for count in (2, 3):
        name = f"fractional_max_pool{count}d"
        add_floats(table, name, at_random_steps)
        add_floats(table, f"{name}_with_indices", fractional)

    scatter = below("scatter")

    def unpooled(input: Any, indices: Any, *sizes: Shape) -> Any:
        planes, size = input.shape[:2], sizes[-1]
        flat = indexing_gather.zeros((*planes, math.prod(size)), input.dtype)
        each = (*planes, math.prod(input.shape[2:]))
        places, values = indices.reshape(each), input.reshape(each)
        return indexing_gather.scatter(flat, 2, places, values, scatter, flat).reshape(
            *planes, *size
        )

    for count in (1, 2, 3):
        table.add(f"max_unpool{count}d", unpooled, dtypes=FLOATS)
