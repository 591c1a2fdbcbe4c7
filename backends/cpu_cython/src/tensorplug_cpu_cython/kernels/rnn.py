"""Recurrent cells, and the loops over all steps of a layer, which write the results where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import rnn
from ..allocator import empty
from ..copying import clone_strided
from ..halves import add_floats
from ..library import onednn

Array = np.ndarray[Any, Any]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("lstm_cell", "gru_cell"):
        add_floats(table, name, getattr(rnn, name))
        add_floats(table, f"{name}_backward", getattr(rnn, f"{name}_gradient"))
    for kernel in (lstm_layer, lstm_layer_backward, gru_layer, gru_layer_backward):
        add_floats(table, kernel.__name__, kernel)


def _multiply(a: Array, b: Array, out: Array, bias: Array | None = None) -> None:
    """Write the product of two matrices into a contiguous one."""
    if _by_onednn(out):
        _matmul().product_into(a, b, out, bias)
        return
    np.matmul(a, b, out=out)
    if bias is not None:
        out += bias


def _by_onednn(array: Array) -> bool:
    return onednn is not None and array.dtype == np.float32


def _matmul() -> Any:
    from .. import matmul  # which is not built without oneDNN

    return matmul


#: For so many products a matrix is written down transposed: oneDNN turns it around in each.
_MANY = 12


def _turned(weight: Array, steps: int) -> Array:
    """Return a matrix transposed, to be multiplied by in each of the steps."""
    if steps < _MANY or not _by_onednn(weight):
        return weight.T
    turned: Array = clone_strided(weight.T, (len(weight), 1))
    return turned


def _order(steps: int, reverse: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _before(first: Array, all_steps: Array, reverse: bool) -> Array:
    """Return what each step began with, given what the steps ended with."""
    parts = (all_steps[1:], first[None]) if reverse else (first[None], all_steps[:-1])
    return np.concatenate(parts)


def _part_of(g_own: Array | None) -> Array | None:
    """Return what is to be added to the gates' gradients, which there is where those are differentiated."""
    return g_own if g_own is not None and g_own.any() else None


def _weight_gradient(g_own: Array, before: Array) -> Array:
    """Return what all steps give the weights, as one product."""
    rows = g_own.shape[0] * g_own.shape[1]
    g_own, before = g_own.reshape(rows, g_own.shape[2]), before.reshape(rows, before.shape[2])
    multiply = _matmul().matmul if _by_onednn(g_own) else np.matmul
    product: Array = multiply(g_own.T, before)
    return product


def lstm_layer(inputs: Sequence[Array], reverse: bool) -> tuple[Array, Array, Array]:
    """Return the hidden and the cell states, and the state's part of the gates, of all steps."""
    gates, weight, hidden, cell = inputs
    steps, (n, h) = len(gates), hidden.shape
    output, states, own = (empty((steps, n, size), gates.dtype) for size in (h, h, 4 * h))
    turned = _turned(weight, steps)
    for t in _order(steps, reverse):
        _multiply(hidden, turned, own[t])
        hidden, cell = rnn.lstm_cell((gates[t], own[t], cell), (output[t], states[t]))
    return output, states, own


def lstm_layer_backward(
    g_output: Array,
    g_states: Array | None,
    g_own: Array | None,
    inputs: Sequence[Array],
    reverse: bool,
    results: Sequence[Array],
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients of the four inputs; None stands for gradients of zero."""
    gates, weight, hidden, cell = inputs
    output, states, own = results
    g_gates = empty(gates.shape, gates.dtype)
    g_hidden, g_cell = (np.zeros_like(cell, order="C") for _ in range(2))
    further = _part_of(g_own)
    g_all = g_gates if further is None else empty(gates.shape, gates.dtype)
    steps = len(gates)
    if g_states is None:
        g_states = np.broadcast_to(np.zeros_like(cell[:1]), output.shape)
    for t in _order(steps, not reverse):
        begun = t + 1 if reverse else t - 1
        given = gates[t], own[t], states[begun] if 0 <= begun < steps else cell
        made = g_gates[t], g_cell
        rnn.lstm_step_gradient(g_output[t], g_states[t], given, states[t], g_hidden, g_cell, made)
        if further is not None:
            np.add(g_gates[t], further[t], out=g_all[t])
        _multiply(g_all[t], weight, g_hidden)
    g_weight = _weight_gradient(g_all, _before(hidden, output, reverse))
    return g_gates, g_weight, g_hidden, g_cell


def gru_layer(inputs: Sequence[Array], reverse: bool) -> tuple[Array, Array]:
    """Return the states, and the state's part of the gates, of all steps."""
    gates, weight, hidden, bias = inputs
    steps, (n, h) = len(gates), hidden.shape
    output, own = (empty((steps, n, size), gates.dtype) for size in (h, 3 * h))
    bias = np.ascontiguousarray(bias)
    turned = _turned(weight, steps)
    for t in _order(steps, reverse):
        _multiply(hidden, turned, own[t], bias)
        hidden = rnn.gru_cell((gates[t], own[t], hidden), (output[t],))
    return output, own


def gru_layer_backward(
    g_output: Array,
    g_own: Array | None,
    inputs: Sequence[Array],
    reverse: bool,
    results: Sequence[Array],
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients of the four inputs; None stands for gradients of zero."""
    gates, weight, hidden, _ = inputs
    output, own = results
    g_gates = empty(gates.shape, gates.dtype)
    g_all = empty(gates.shape, gates.dtype)
    g_hidden, direct = (np.zeros_like(hidden, order="C") for _ in range(2))
    further = _part_of(g_own)
    before = _before(hidden, output, reverse)
    for t in _order(len(gates), not reverse):
        given, made = (gates[t], own[t], before[t]), (g_gates[t], g_all[t], direct)
        rnn.gru_step_gradient(g_output[t], given, g_hidden, direct, made)
        if further is not None:
            g_all[t] += further[t]
        _multiply(g_all[t], weight, g_hidden)
    g_hidden += direct
    return g_gates, _weight_gradient(g_all, before), g_hidden, g_all.sum((0, 1))
