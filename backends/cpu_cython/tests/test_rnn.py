"""Layers of LSTMs and GRUs against their formulas, step by step, in float64."""

import numpy as np
import pytest

pytest.importorskip("tensorplug_cpu_cython.rnn", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug import nn


def lstm(x, h, c, weights):
    """Return the hidden states of all steps by the definition of the cell."""
    of_input, of_state, bias_input, bias_state = weights
    states = []
    for row in x:
        gates = row @ of_input.T + bias_input + h @ of_state.T + bias_state
        i, f, g, o = gates.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return tp.stack(states)


def gru(x, h, _, weights):
    """Return the states of all steps by the definition of the cell."""
    of_input, of_state, bias_input, bias_state = weights
    states = []
    for row in x:
        a, b = row @ of_input.T + bias_input, h @ of_state.T + bias_state
        (ar, az, an), (br, bz, bn) = a.chunk(3, -1), b.chunk(3, -1)
        z = (az + bz).sigmoid()
        h = (1 - z) * (an + (ar + br).sigmoid() * bn).tanh() + z * h
        states.append(h)
    return tp.stack(states)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(
    ("steps", "rows", "size"),
    [(1, 3, 5), (4, 1, 8), (12, 2, 16), (13, 17, 7), (30, 1, 33), (15, 32, 64)],
)
def test_all_steps_of_a_layer(kind, dtype, steps, rows, size):
    """Results and gradients, with so many steps that weights are written down transposed, and fewer."""
    tp.manual_seed(steps)
    layer = getattr(nn, kind)(size, size, bidirectional=True, dtype=dtype)
    x, towards = (
        tp.randn(steps, rows, width, dtype=dtype, requires_grad=width == size)
        for width in (size, 2 * size)
    )
    begun = [tp.randn(2, rows, size, dtype=dtype, requires_grad=True) for _ in range(2)]
    weights = list(layer.parameters())
    leaves = [x, *begun[: 2 if kind == "LSTM" else 1], *weights]
    found, _ = layer(x, tuple(begun) if kind == "LSTM" else begun[0])
    gradients = tp.autograd.grad((found * towards).sum(), leaves)

    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    of = dict(zip(map(id, leaves), exact, strict=True))
    run = lstm if kind == "LSTM" else gru
    first, second = (
        [of.get(id(state), state.double())[way] for state in begun] for way in range(2)
    )
    doubles = [of[id(weight)] for weight in weights]
    ahead = run(of[id(x)], *first, doubles[:4])
    back = run(of[id(x)].flip(0), *second, doubles[4:]).flip(0)
    expected = tp.cat([ahead, back], -1)
    wanted = tp.autograd.grad((expected * towards.double()).sum(), exact)
    tolerance = 1e-4 if dtype is tp.float32 else 1e-10
    for value, reference in zip((found, *gradients), (expected, *wanted), strict=True):
        largest = reference.abs().max().item()
        assert (
            np.abs(value.detach().numpy() - reference.detach().numpy()).max() <= tolerance * largest
        )
