"""Gradients of recurrent layers in compiled programs, with and without gradients of all their results."""

import pytest

pytest.importorskip("tensorplug_cpu_cython.rnn", reason="cpu_cython is not built")
import tensorplug as tp
from tensorplug import nn
from tensorplug.nn.ops.rnn import layers

USES = {
    "output": lambda output, state: output.square().sum(),
    "last state": lambda output, state: state[0].square().sum(),
    "last cell": lambda output, state: state[-1].square().sum(),
    "all": lambda output, state: output.sum() + sum(s.exp().sum() for s in state),
}


def regions(compiled):
    found = [entry for entries in compiled._entries.values() for entry in entries]
    programs = [p for entry in found for p in entry.training.backward.values()]
    steps = [step for program in programs for step in program.steps]
    return [step for step in steps if hasattr(step, "fuser") and step.fuser.name == "recurrent"]


@pytest.mark.parametrize("dtype", [tp.float32, tp.float64], ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients(kind, use, bidirectional, dtype):
    """They are those of the program, bit for bit."""
    layer = getattr(nn, kind)(6, 10, 2, bidirectional=bidirectional, dtype=dtype)

    def program(x):
        output, state = layer(x)
        return USES[use](output, state if kind == "LSTM" else (state,))

    compiled = tp.compile(program)
    leaves = list(layer.parameters())
    for _ in range(4):
        x = tp.randn(14, 3, 6, dtype=dtype, requires_grad=True)
        found = tp.autograd.grad(compiled(x), [x, *leaves])
        expected = tp.autograd.grad(program(x), [x, *leaves])
        for value, reference in zip(found, expected, strict=True):
            tp.testing.assert_close(value, reference, rtol=0, atol=0)
    served = regions(compiled)
    assert len(served) == (2 if not bidirectional else 4)
    assert all([step.call is not None for step in served])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients_of_all_results(kind):
    """Where a gradient comes in for each result nothing is left out."""
    size, count = 5, 4 if kind == "LSTM" else 3
    run = layers.lstm_layer if kind == "LSTM" else layers.gru_layer
    last = (2, size) if kind == "LSTM" else (count * size,)
    shapes = [(13, 2, count * size), (count * size, size), (2, size), last]

    def program(*given):
        return sum([made.sin().sum() for made in run(list(given), False)])

    compiled = tp.compile(program)
    for _ in range(4):
        given = [tp.randn(shape, requires_grad=True) for shape in shapes]
        found = tp.autograd.grad(compiled(*given), given)
        expected = tp.autograd.grad(program(*given), given)
        for value, reference in zip(found, expected, strict=True):
            tp.testing.assert_close(value, reference, rtol=0, atol=0)
    assert not regions(compiled)
