"""Records of recurrent networks, and of what their cells do with the gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType

from ..records import OpRecord, Sample


def _sigmoid(a: Any) -> Any:
    return 1 / (1 + np.exp(-a))


def _inputs(make: Any, n: int, h: int, gates: int) -> list[Any]:
    return [make(*shape, low=-2.0, high=2.0) for shape in ((n, gates * h), (n, gates * h), (n, h))]


def _sizes() -> Iterator[tuple[int, int]]:
    yield 3, 2
    yield 1, 5
    yield 2, 17
    yield 0, 3


def _lstm_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for n, h in _sizes():
        yield Sample(_inputs(make, n, h, 4))


def _lstm(inputs: Any) -> Any:
    i, f, g, o = np.split(inputs[0] + inputs[1], 4, 1)
    state = _sigmoid(f) * inputs[2] + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(state), state


def _lstm_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for n, h in _sizes():
        state = make(n, h, low=-1.0, high=1.0)
        g_hidden, g_state = make(n, h, low=-1.0, high=1.0), make(n, h, low=-1.0, high=1.0)
        yield Sample(g_hidden, g_state, _inputs(make, n, h, 4), state)


def _lstm_backward(g_hidden: Any, g_state: Any, inputs: Any, state: Any) -> Any:
    i, f, g, o = np.split(inputs[0] + inputs[1], 4, 1)
    i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
    total = g_state + g_hidden * o / np.cosh(state) ** 2
    parts = [total * g * i * (1 - i), total * inputs[2] * f * (1 - f), total * i * (1 - g**2)]
    parts.append(g_hidden * np.tanh(state) * o * (1 - o))
    return np.concatenate(parts, 1), total * f


def _gru_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for n, h in _sizes():
        yield Sample(_inputs(make, n, h, 3))


def _gru_parts(inputs: Any) -> Any:
    (r_in, z_in, n_in), (r_own, z_own, n_own) = (np.split(part, 3, 1) for part in inputs[:2])
    r, z = _sigmoid(r_in + r_own), _sigmoid(z_in + z_own)
    return r, z, np.tanh(n_in + r * n_own), n_own


def _gru(inputs: Any) -> Any:
    _, z, n, _ = _gru_parts(inputs)
    return (1 - z) * n + z * inputs[2]


def _gru_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for n, h in _sizes():
        yield Sample(make(n, h, low=-1.0, high=1.0), _inputs(make, n, h, 3))


def _gru_backward(g: Any, inputs: Any) -> Any:
    r, z, n, n_own = _gru_parts(inputs)
    g_new = g * (1 - z) * (1 - n**2)
    g_reset, g_update = g_new * n_own * r * (1 - r), g * (inputs[2] - n) * z * (1 - z)
    shared = np.concatenate([g_reset, g_update], 1)
    return (
        np.concatenate([shared, g_new], 1),
        np.concatenate([shared, g_new * r], 1),
        g * z,
    )


# --- layers ---------------------------------------------------------------------------------------


def _layers(make: Any, gates: int, states: int) -> Iterator[tuple[list[Any], bool]]:
    """Yield the inputs of all steps of a layer, and the direction."""
    for steps, n, h, reverse in (
        (3, 2, 2, False),
        (2, 3, 17, True),
        (1, 1, 5, False),
        (2, 0, 3, True),
    ):
        shapes = [(steps, n, gates * h), (gates * h, h), *[(n, h)] * states]
        shapes += [(gates * h,)] if gates == 3 else []
        yield [make(*shape, low=-1.0, high=1.0) for shape in shapes], reverse


def _lstm_layer_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for inputs, reverse in _layers(make, 4, 2):
        yield Sample(inputs, reverse)


def _gru_layer_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for inputs, reverse in _layers(make, 3, 1):
        yield Sample(inputs, reverse)


def _lstm_layer(inputs: Any, reverse: bool) -> Any:
    gates, weight, hidden, cell = inputs
    made = []
    for step in gates[::-1] if reverse else gates:
        own = hidden @ weight.T
        hidden, cell = _lstm((step, own, cell))
        made.append((hidden, cell, own))
    return tuple(np.stack(some[::-1] if reverse else some) for some in zip(*made, strict=True))


def _gru_layer(inputs: Any, reverse: bool) -> Any:
    gates, weight, hidden, bias = inputs
    made = []
    for step in gates[::-1] if reverse else gates:
        own = hidden @ weight.T + bias
        hidden = _gru((step, own, hidden))
        made.append((hidden, own))
    return tuple(np.stack(some[::-1] if reverse else some) for some in zip(*made, strict=True))


def _lstm_layer_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for inputs, reverse in _layers(make, 4, 2):
        steps, n, columns = inputs[0].shape
        h = columns // 4
        given = [make(steps, n, size, low=-1.0, high=1.0) for size in (h, h, columns)]
        results = [make(steps, n, size, low=-1.0, high=1.0) for size in (h, h, columns)]
        yield Sample(*given, inputs, reverse, results)


def _gru_layer_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for inputs, reverse in _layers(make, 3, 1):
        steps, n, columns = inputs[0].shape
        given = [make(steps, n, size, low=-1.0, high=1.0) for size in (columns // 3, columns)]
        results = [make(steps, n, size, low=-1.0, high=1.0) for size in (columns // 3, columns)]
        yield Sample(*given, inputs, reverse, results)


def _begun(first: Any, results: Any, reverse: bool) -> Any:
    return np.concatenate([results[1:], first[None]] if reverse else [first[None], results[:-1]])


def _lstm_layer_backward(
    g_output: Any, g_states: Any, g_own: Any, inputs: Any, reverse: bool, results: Any
) -> Any:
    gates, weight, hidden, cell = inputs
    output, states, own = results
    cells = _begun(cell, states, reverse)
    g_gates, g_hidden, g_cell = np.zeros(gates.shape), np.zeros(hidden.shape), np.zeros(cell.shape)
    for t in range(len(gates)) if reverse else reversed(range(len(gates))):
        given = g_output[t] + g_hidden, g_states[t] + g_cell
        g_gates[t], g_cell = _lstm_backward(*given, (gates[t], own[t], cells[t]), states[t])
        g_hidden = (g_gates[t] + g_own[t]) @ weight
    g_weight = np.einsum("tng,tnh->gh", g_gates + g_own, _begun(hidden, output, reverse))
    return g_gates, g_weight, g_hidden, g_cell


def _gru_layer_backward(g_output: Any, g_own: Any, inputs: Any, reverse: bool, results: Any) -> Any:
    gates, weight, hidden, _ = inputs
    output, own = results
    before = _begun(hidden, output, reverse)
    g_gates, g_all, g_hidden = np.zeros(gates.shape), np.zeros(gates.shape), np.zeros(hidden.shape)
    for t in range(len(gates)) if reverse else reversed(range(len(gates))):
        step = gates[t], own[t], before[t]
        g_gates[t], g_all[t], g_hidden = _gru_backward(g_output[t] + g_hidden, step)
        g_all[t] += g_own[t]
        g_hidden = g_hidden + g_all[t] @ weight
    return g_gates, np.einsum("tng,tnh->gh", g_all, before), g_hidden, g_all.sum((0, 1))


# --- networks -------------------------------------------------------------------------------------

# (N, layers, has_biases, bidirectional, batch_first, size of projected states), of three steps.
_NETWORKS = (
    (2, 1, True, False, False, 0),
    (3, 2, True, True, True, 0),
    (1, 1, False, True, False, 0),
    (2, 2, False, False, True, 2),
    (0, 1, True, False, False, 0),
)


def _network_samples(gates: int, states: int) -> Any:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for n, layers, has_biases, bidirectional, batch_first, projected in _NETWORKS:
            count, features, h = layers * (1 + bidirectional), 2, 3
            shown = projected if projected and states == 2 else h
            params: list[Any] = []
            for index in range(count):
                inner = shown * (1 + bidirectional)
                columns = features if index < 1 + bidirectional else inner
                shapes: list[tuple[int, ...]] = [(gates * h, columns), (gates * h, shown)]
                shapes += [(gates * h,)] * 2 if has_biases else []
                shapes += [(shown, h)] if shown != h else []
                params += [make(*shape, low=-0.5, high=0.5) for shape in shapes]
            x = make(*((n, 3) if batch_first else (3, n)), features, low=-1.0, high=1.0)
            sizes = (shown, h)[:states]
            hx = [make(count, n, size, low=-1.0, high=1.0) for size in sizes]
            given = hx if states == 2 else hx[0]
            options = has_biases, layers, 0.0, False, bidirectional, batch_first
            yield Sample(x, given, params, *options)

    return samples


def _network(cell: Any) -> Any:
    """Return the reference of a network; ``cell(gates, own, state)`` is one step of one layer."""

    def reference(
        x: Any, hx: Any, params: Any, has_biases: bool, layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        states = hx if isinstance(hx, (list, tuple)) else [hx]
        directions = 1 + bidirectional
        each = len(params) // (layers * directions)
        x = x.swapaxes(0, 1) if batch_first else x
        last: list[Any] = []
        for layer in range(layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                w, u, *rest = params[index * each : (index + 1) * each]
                b, c = rest[:2] if has_biases else (0, 0)
                state = [s[index] for s in states]
                shown = []
                for step in x[::-1] if direction else x:
                    state = list(cell(step @ w.T + b, state[0] @ u.T + c, state))
                    if each % 2:
                        state[0] = state[0] @ rest[-1].T
                    shown.append(state[0])
                outputs.append(np.stack(shown[::-1] if direction else shown))
                last.append(state)
            x = np.concatenate(outputs, -1)
        return x.swapaxes(0, 1) if batch_first else x, *map(np.stack, zip(*last, strict=True))

    return reference


_CELLS: dict[str, tuple[int, Any]] = {
    "lstm": (4, lambda gates, own, state: _lstm((gates, own, state[1]))),
    "gru": (3, lambda gates, own, state: [_gru((gates, own, state[0]))]),
    "rnn_tanh": (1, lambda gates, own, state: [np.tanh(gates + own)]),
    "rnn_relu": (1, lambda gates, own, state: [np.maximum(gates + own, 0)]),
}


def _record(op: str, samples: Any, reference: Any, torch: str | None = "") -> OpRecord:
    rounding: dict[str, float] = {"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-6}
    return OpRecord(op, samples, reference, dtypes=FLOATS, atol=rounding, torch=torch)


RECORDS = [
    _record("lstm_cell", _lstm_samples, _lstm),
    _record("lstm_cell_backward", _lstm_backward_samples, _lstm_backward),
    _record("gru_cell", _gru_samples, _gru),
    _record("gru_cell_backward", _gru_backward_samples, _gru_backward),
    _record("lstm_layer", _lstm_layer_samples, _lstm_layer),
    _record("lstm_layer_backward", _lstm_layer_backward_samples, _lstm_layer_backward),
    _record("gru_layer", _gru_layer_samples, _gru_layer),
    _record("gru_layer_backward", _gru_layer_backward_samples, _gru_layer_backward),
    *[
        _record(name, _network_samples(gates, 2 if name == "lstm" else 1), _network(cell), None)
        for name, (gates, cell) in _CELLS.items()
    ],
]
