"""The step of Adafactor, in kernels of its own: nothing of it waits for the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import cp
from ...dtypes import name_of
from .fused import flags, numbers

_MOST_PARTS = 512  # of a sum of squares, which each block adds up
#: As in sources/adafactor.cu.
SIZES = np.dtype([("matrices", np.int64), ("rows", np.int64), ("columns", np.int64)])


def build(table: KernelTable) -> None:
    """Add the kernel to `table`."""
    table.add("optim.adafactor_step", adafactor_step, dtypes=FLOATS)


def adafactor_step(
    params: list[Any],
    grads: list[Any],
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    steps: list[float],
    lr: float,
    beta2_decay: float,
    eps1: float,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of Adafactor."""
    for i, parameter in enumerate(params):
        if not parameter.size:
            continue
        written = [parameter, *([variances[i]] if variances else [row_vars[i], col_vars[i]])]
        dense = [cp.ascontiguousarray(array) for array in written]
        _step(
            dense[0], cp.ascontiguousarray(grads[i]), dense[1:], steps[i],
            lr, beta2_decay, eps1, eps2, d, weight_decay, maximize,
        )  # fmt: skip
        for array, copy in zip(written, dense, strict=True):
            if not array.flags.c_contiguous:
                array[...] = copy


def _step(
    parameter: Any,
    gradient: Any,
    state: list[Any],
    step: float,
    lr: float,
    beta2_decay: float,
    eps1: float,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update one parameter, in rows; the state is a variance, or rows and columns."""
    dtype, count = name_of(parameter), parameter.size
    wide = np.dtype(np.float64 if dtype == "float64" else np.float32)
    blocks = min(sources.blocks_for(count), _MOST_PARTS)
    sums = cp.empty((2, blocks), wide)
    sizes = np.zeros(1, SIZES)
    sizes["rows"], sizes["columns"] = parameter.shape[-2:] if len(state) == 2 else (1, count)
    sizes["matrices"] = matrices = math.prod(parameter.shape[:-2]) if len(state) == 2 else 1
    sizes = sources.by_value(sizes)
    forgotten = np.float64(step**beta2_decay)
    rows = means = None

    def launch(name: str, blocks: int, *arguments: Any) -> None:
        sources.launch("optimizers_adafactor", name, dtype, blocks, arguments)

    launch("squares", blocks, parameter, sums[0], np.int64(count))
    columns = state[-1]
    if len(state) == 2:
        rows, means = state[0], cp.empty(matrices, wide)
        launch("row_means", rows.size, gradient, rows, sizes, forgotten)
        threads = sources.blocks_for(columns.size)
        launch("column_means", threads, gradient, columns, sizes, forgotten)
        launch("matrix_means", matrices, rows, means, sizes, np.float64(eps1))
    else:
        launch("element_means", blocks, gradient, columns, np.int64(count), forgotten)
    least = np.float64(eps1 * eps1)
    launch("update_squares", blocks, gradient, rows, columns, means, sums[1], sizes, least)
    rate = min(lr, step**-0.5)
    options = (*numbers(rate, eps2, d, 1 - lr * weight_decay), *flags(maximize))
    parts = np.int32(blocks)
    launch(
        "apply", sources.blocks_for(count), parameter, gradient, rows, columns, means, sums[0], sums[1],
        parts, sizes, least, *options,
    )  # fmt: skip
