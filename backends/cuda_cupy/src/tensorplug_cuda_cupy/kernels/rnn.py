"""The gates of LSTM and GRU between their matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import FLOATS, KernelTable

from .. import sources
from .._cupy import cp
from ..dtypes import name_of

# As in sources/cells.cu.
_ROWS = ("gates", "own", "state", "g_hidden", "g_state", "next")
ROWS = np.dtype([(name, np.int64) for name in _ROWS])


def build(table: KernelTable) -> None:
    """Add these kernels to `table`."""
    for function in (lstm_cell, lstm_cell_backward, gru_cell, gru_cell_backward):
        table.add(function.__name__, function, dtypes=FLOATS)


def lstm_cell(inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Return the next hidden and cell states."""
    hidden, state = _launched("lstm_cell", _named(inputs), (1, 1))
    return hidden, state


def lstm_cell_backward(
    g_hidden: Any, g_state: Any, inputs: Sequence[Any], state: Any
) -> tuple[Any, Any]:
    """Return the gradients of the gates, which is that of both parts, and of the cell state."""
    arrays = {**_named(inputs), "g_hidden": g_hidden, "g_state": g_state, "next": state}
    g_gates, g_cell = _launched("lstm_cell_backward", arrays, (4, 1))
    return g_gates, g_cell


def gru_cell(inputs: Sequence[Any]) -> Any:
    """Return the next state."""
    return _launched("gru_cell", _named(inputs), (1,))[0]


def gru_cell_backward(g: Any, inputs: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Return the gradients of the two parts of the gates, and of the state."""
    arrays = {**_named(inputs), "g_hidden": g}
    g_gates, g_own, g_state = _launched("gru_cell_backward", arrays, (3, 3, 1))
    return g_gates, g_own, g_state


def _named(inputs: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(("gates", "own", "state"), inputs, strict=True))


def _launched(kernel: str, arrays: dict[str, Any], widths: Sequence[int]) -> list[Any]:
    """Run a kernel; return new arrays of as many times H columns as `widths` says."""
    n, h = arrays["state"].shape
    steps = np.zeros(1, ROWS)
    rows = []
    for name, array in arrays.items():
        if array.shape[1] > 1 and array.strides[1] != array.itemsize:
            array = cp.ascontiguousarray(array)
        steps[name] = array.strides[0] // array.itemsize
        rows.append(array)
    dtype = arrays["state"].dtype
    results = [cp.empty((n, width * h), dtype) for width in widths]
    if n * h:
        arguments = (*rows, *results, np.int64(n * h), np.int64(h), sources.by_value(steps))
        sources.launch("rnn", kernel, name_of(rows[0]), sources.blocks_for(n * h), arguments)
    return results
