"""Recurrent networks, with ONNX's choice of activations, directions, peepholes and lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.tensor.creation import tensor
from tensorplug.nn import functional as F

from ..registry import operator

__all__: list[str] = []

_ACTIVATIONS: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, b: F.elu(x, a),
    "HardSigmoid": lambda x, a, b: ops.clamp(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, b: F.leaky_relu(x, a),
    "Relu": lambda x, a, b: F.relu(x),
    "ScaledTanh": lambda x, a, b: a * ops.tanh(b * x),
    "Sigmoid": lambda x, a, b: ops.sigmoid(x),
    "Softplus": lambda x, a, b: F.softplus(x),
    "Softsign": lambda x, a, b: F.softsign(x),
    "Tanh": lambda x, a, b: ops.tanh(x),
    "ThresholdedRelu": lambda x, a, b: F.threshold(x, a, 0.0),
}
_DEFAULTS = {
    "Affine": (1.0, 0.0),
    "Elu": (1.0, 0.0),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01, 0.0),
    "ScaledTanh": (1.0, 1.0),
    "ThresholdedRelu": (1.0, 0.0),
}
#: One step: input's part of the gates, states, the recurrent weight and bias; returns the new states.
_Cell = Callable[[Tensor, list[Tensor], Tensor, "Tensor | None"], list[Tensor]]


def _activations(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    default: Sequence[str],
    directions: int,
) -> list[Callable[[Tensor], Tensor]]:
    """Return the functions of all directions; parameters are handed to those that have any, in order."""
    chosen = list(names or list(default) * directions)
    alpha, beta = iter(alphas or ()), iter(betas or ())
    result: list[Callable[[Tensor], Tensor]] = []
    for name in chosen:
        title = next((known for known in _ACTIVATIONS if known.lower() == name.lower()), None)
        if title is None:
            raise NotImplementedError(f"the activation {name!r}")
        a, b = _DEFAULTS.get(title, (0.0, 0.0))
        if title in _DEFAULTS:
            a = next(alpha, a)
            b = next(beta, b) if title in ("Affine", "HardSigmoid", "ScaledTanh") else b
        result.append(_bound(_ACTIVATIONS[title], a, b))
    return result


def _bound(
    function: Callable[[Tensor, float, float], Tensor], a: float, b: float
) -> Callable[[Tensor], Tensor]:
    return lambda x: function(x, a, b)


def _direction(
    x: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor | None,
    states: list[Tensor],
    lengths: Tensor | None,
    backward: bool,
    cell: _Cell,
) -> tuple[Tensor, list[Tensor]]:
    """Run one direction over time; sequences that have ended keep their state and give zeros."""
    half = weight.shape[0]
    own = None if bias is None else bias[:half]
    other = None if bias is None else bias[half:]
    gates = F.linear(x, weight, own)
    outputs: list[Tensor] = [x] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        new = cell(gates[t], states, recurrent, other)
        output = new[0]
        if lengths is not None:
            running = (t < lengths)[:, None]
            output = ops.where(running, output, ops.zeros_like(output))
            new = [ops.where(running, n, old) for n, old in zip(new, states, strict=True)]
        outputs[t] = output
        states = new
    return ops.stack(outputs), states


def _run(
    x: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor | None,
    lengths: Any,
    initial: Sequence[Tensor | None],
    cells: Sequence[_Cell],
    direction: str,
    layout: int,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    if layout:
        x = ops.transpose(x, 0, 1)
        initial = [None if s is None else ops.transpose(s, 0, 1) for s in initial]
    size = recurrent.shape[-1]
    zeros = ops.zeros((x.shape[1], size), dtype=x.dtype, device=x.device)
    ends = None if lengths is None else tensor(lengths, device=x.device)
    outputs: list[Tensor] = []
    finals: list[list[Tensor]] = []
    for d, cell in enumerate(cells):
        states = [zeros if s is None else s[d] for s in initial]
        backward = direction == "reverse" or d == 1
        b = None if bias is None else bias[d]
        y, last = _direction(x, weight[d], recurrent[d], b, states, ends, backward, cell)
        outputs.append(y)
        finals.append(last)
    Y = ops.stack(outputs, 1)
    ends_of = [ops.stack([last[i] for last in finals]) for i in range(len(initial))]
    if layout:
        Y = ops.permute(Y, (2, 0, 1, 3))
        ends_of = [ops.transpose(s, 0, 1) for s in ends_of]
    return (Y, *ends_of)[:n_outputs]


def _clipped(x: Tensor, clip: float | None) -> Tensor:
    return x if clip is None else ops.clamp(x, -clip, clip)


def _count(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


@operator("RNN", host=("sequence_lens",))
def rnn(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Any = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
    n_outputs: int,
) -> Any:
    count = _count(direction)
    functions = _activations(activations, activation_alpha, activation_beta, ["Tanh"], count)

    def cell_of(f: Callable[[Tensor], Tensor]) -> _Cell:
        def cell(g: Tensor, s: list[Tensor], r: Tensor, b: Tensor | None) -> list[Tensor]:
            return [f(_clipped(g + F.linear(s[0], r, b), clip))]

        return cell

    cells = [cell_of(functions[d]) for d in range(count)]
    return _run(X, W, R, B, sequence_lens, [initial_h], cells, direction, layout, n_outputs)


@operator("GRU", host=("sequence_lens",))
def gru(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Any = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
    n_outputs: int,
) -> Any:
    count = _count(direction)
    default = ["Sigmoid", "Tanh"]
    functions = _activations(activations, activation_alpha, activation_beta, default, count)

    def cell_of(f: Callable[[Tensor], Tensor], g: Callable[[Tensor], Tensor]) -> _Cell:
        def cell(x: Tensor, s: list[Tensor], r: Tensor, b: Tensor | None) -> list[Tensor]:
            h = s[0]
            n = h.shape[-1]
            bias = (None, None) if b is None else (b[: 2 * n], b[2 * n :])
            zr = f(_clipped(x[:, : 2 * n] + F.linear(h, r[: 2 * n], bias[0]), clip))
            z, reset = zr[:, :n], zr[:, n:]
            if linear_before_reset:
                inner = reset * F.linear(h, r[2 * n :], bias[1])
            else:
                inner = F.linear(reset * h, r[2 * n :], bias[1])
            candidate = g(_clipped(x[:, 2 * n :] + inner, clip))
            return [(1 - z) * candidate + z * h]

        return cell

    cells = [cell_of(*functions[2 * d : 2 * d + 2]) for d in range(count)]
    return _run(X, W, R, B, sequence_lens, [initial_h], cells, direction, layout, n_outputs)


@operator("LSTM", host=("sequence_lens",))
def lstm(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Any = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    P: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
    n_outputs: int,
) -> Any:
    count = _count(direction)
    default = ["Sigmoid", "Tanh", "Tanh"]
    functions = _activations(activations, activation_alpha, activation_beta, default, count)

    def cell_of(
        f: Callable[[Tensor], Tensor],
        g: Callable[[Tensor], Tensor],
        h: Callable[[Tensor], Tensor],
        peepholes: Sequence[Tensor] | None,
    ) -> _Cell:
        def cell(x: Tensor, s: list[Tensor], r: Tensor, b: Tensor | None) -> list[Tensor]:
            i, o, forget, c = ops.chunk(x + F.linear(s[0], r, b), 4, 1)
            if peepholes is not None:
                i, forget = i + peepholes[0] * s[1], forget + peepholes[2] * s[1]
            i = f(_clipped(i, clip))
            forget = 1 - i if input_forget else f(_clipped(forget, clip))
            new = forget * s[1] + i * g(_clipped(c, clip))
            if peepholes is not None:
                o = o + peepholes[1] * new
            return [f(_clipped(o, clip)) * h(new), new]

        return cell

    cells = [
        cell_of(
            functions[3 * d],
            functions[3 * d + 1],
            functions[3 * d + 2],
            None if P is None else ops.chunk(P[d], 3),
        )
        for d in range(count)
    ]
    initial = [initial_h, initial_c]
    return _run(X, W, R, B, sequence_lens, initial, cells, direction, layout, n_outputs)
