"""The most memory that a training step holds is what has to be kept, and a few tensors beside.

What is alive is counted by tracemalloc, to which NumPy reports its arrays, so the numbers do not depend on
the machine. `benchmarks/memory.py` compares with torch.
"""

import gc
import itertools
import math
import tracemalloc

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.utils.checkpoint import checkpoint_sequential

LAYERS = 50
GRAPH = 300_000  # bytes of Python objects: nodes, tensors, tuples


class Held:
    """Counts, within a block, the bytes that are held at its end and the most at any time."""

    def __enter__(self):
        gc.collect()
        gc.disable()
        tracemalloc.start()
        return self

    def look(self):
        self.now, self.peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        return self.now, self.peak

    def __exit__(self, *exc):
        tracemalloc.stop()
        gc.enable()


def network(kind):
    """A network, the shape of its input, and how many tensors of that size a layer keeps."""
    layers = []
    for _ in range(LAYERS):
        if kind == "linear":
            layers += [nn.Linear(64, 64), nn.ReLU()]
        elif kind == "convolution":
            layers += [nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()]
        else:
            layers += [nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    shape = (2048, 64) if kind == "linear" else (32, 8, 32, 32)
    return nn.Sequential(*layers), shape, 2 if kind == "normalized" else 1


def step_of(kind):
    tp.manual_seed(0)
    model, shape, kept = network(kind)
    for size in (1, 2):  # fills tables and caches
        model(tp.randn(size, *shape[1:])).square().mean().backward()
    for parameter in model.parameters():
        parameter.grad = None
    size = 4 * math.prod(shape)
    weights = sum(4 * p.numel() for p in model.parameters())
    return model, tp.randn(*shape), size, kept * LAYERS * size, weights


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "beside"), [("linear", 3), ("convolution", 5), ("normalized", 4)])
def test_a_step_holds_what_it_saved_and_a_few_tensors(kind, beside):
    model, x, size, saved, weights = step_of(kind)
    with Held() as held:
        loss = model(x).square().mean()
        now, peak = held.look()
        assert now <= saved + size + GRAPH
        assert peak <= saved + beside * size + GRAPH
        loss.backward()
        now, peak = held.look()
        # Gradients of parameters come as saved tensors go.
        assert peak <= max(saved, weights) + beside * size + 1.1 * weights + GRAPH
        assert now <= weights + 2 * size + GRAPH


def test_a_pass_frees_as_it_goes():
    """With each layer that is done, what it saved is gone; nothing waits for the end."""
    model, x, size, _, weights = step_of("linear")
    seen = []
    with Held() as held:
        for layer in list(model)[20::20]:
            layer.weight.register_hook(lambda g: seen.append(held.look()[0]))
        model(x).square().mean().backward()
    assert len(seen) == 4  # from layer 40 to layer 10
    for first, second in itertools.pairwise(seen):
        assert first - second == pytest.approx(10 * size - 10 * weights / LAYERS, abs=size / 2)


@pytest.mark.slow
def test_checkpoints_hold_a_part():
    model, x, size, saved, weights = step_of("convolution")
    with Held() as held:
        checkpoint_sequential(model, 7, x, use_reentrant=False).square().mean().backward()
        _, peak = held.look()
    # Seven segments' inputs, and the inside of one.
    assert peak <= (7 + math.ceil(LAYERS / 7) + 5) * size + 1.1 * weights + GRAPH
    assert peak < saved / 2


def test_gradients_that_meet_are_summed_in_place():
    x = tp.randn(1 << 20, requires_grad=True)

    def run():
        y = x * 2.0
        for _ in range(6):
            y = y + y * 0.5  # a residual connection: two paths meet at each y
        y.sum().backward()

    run()
    size = 4 << 20
    x.grad = None
    with Held() as held:
        run()
        _, peak = held.look()
    # Two values on the way forward; on the way back the gradient, what is added to it, and the result.
    assert peak <= 3.1 * size + GRAPH
    assert x.grad[0].item() == pytest.approx(2 * 1.5**6)


def test_a_gradient_is_handed_over_not_copied():
    """A weight's gradient has the memory that the product was computed into."""
    model, x = nn.Linear(1024, 1024, bias=False), tp.randn(2, 1024)
    model(x).sum().backward()
    model.weight.grad = None
    loss = model(x).sum()
    with Held() as held:
        loss.backward()
        _, peak = held.look()
    assert peak < 1.1 * 4 * 1024 * 1024
