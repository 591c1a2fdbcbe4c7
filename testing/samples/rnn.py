"""Records of what recurrent cells do with their gates."""

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


def _record(op: str, samples: Any, reference: Any) -> OpRecord:
    rounding: dict[str, float] = {"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-6}
    return OpRecord(op, samples, reference, dtypes=FLOATS, atol=rounding, torch="")


RECORDS = [
    _record("lstm_cell", _lstm_samples, _lstm),
    _record("lstm_cell_backward", _lstm_backward_samples, _lstm_backward),
    _record("gru_cell", _gru_samples, _gru),
    _record("gru_cell_backward", _gru_backward_samples, _gru_backward),
]
