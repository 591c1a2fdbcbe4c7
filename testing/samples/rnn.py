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
    *[
        _record(name, _network_samples(gates, 2 if name == "lstm" else 1), _network(cell), None)
        for name, (gates, cell) in _CELLS.items()
    ],
]
