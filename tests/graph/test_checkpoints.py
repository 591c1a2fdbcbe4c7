"""Compiled programs with ``checkpoint``: what it runs again is not saved, and all is as in eager mode."""

import contextlib
import math
import tracemalloc

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import capture
from tensorplug.graph.joint import join
from tensorplug.nn import functional as F
from tensorplug.utils.checkpoint import checkpoint, noop_context_fn


def again(function, *args, **options):
    return checkpoint(function, *args, use_reentrant=False, **options)


class Block(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


class Stack(nn.Module):
    def __init__(self, run=again, drop=0.0):
        super().__init__()
        self.blocks = nn.ModuleList([Block(drop) for _ in range(3)])
        self.run = run

    def forward(self, x):
        for block in self.blocks:
            x = self.run(block, x)
        return x


class Nested(Stack):
    def forward(self, x):
        return again(lambda x: super(Nested, self).forward(x) * 2, x)


class Cast(Stack):
    def forward(self, x):
        with tp.autocast("cpu", tp.bfloat16):
            return super().forward(x)


class Several(nn.Module):
    """Checkpoints of several results, of what is used outside as well, beside what has none."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        def part(x, y):
            low, high = self.first(x).sin().chunk(2, -1)
            return low, (high * y).exp(), low.detach()

        y = x[..., :4].cos()
        low, high, cut = again(part, x, y)
        return self.second(tp.cat([low + cut, high * y], -1)), low.square()


class Slopes(nn.Module):
    """Gradients within the program, of a part that runs again, and an op within which autocast casts."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        def part(x):
            with tp.autocast("cpu", tp.bfloat16):
                mixed = tp.einsum("ij,kj->ik", x, self.linear.weight)
            return tp.func.grad(lambda x: self.linear(x).tanh().sum())(x) + mixed

        return again(part, x)


def plainly(function, *args):
    return function(*args)


NETWORKS = {
    "blocks": Stack,
    "dropout": lambda: Stack(drop=0.5),
    "nested": Nested,
    "autocast": Cast,
    "several results": Several,
    "no check": lambda: Stack(lambda *args: again(*args, determinism_check="none", debug=True)),
    "some": lambda: Stack(lambda block, x: again(block, x) if x.sum() is not None else block(x)),
}


def results(model, run, x):
    tp.manual_seed(3)
    model.zero_grad()
    x = x.detach().clone().requires_grad_()
    made = run(x)
    loss = sum([t.float().square().sum() for t in (made if isinstance(made, tuple) else [made])])
    loss.backward()
    return [loss.detach(), x.grad, *[p.grad.clone() for p in model.parameters()]]


@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_are_eagers(network):
    tp.manual_seed(0)
    model = NETWORKS[network]()
    compiled = tp.compile(model)
    for _ in range(4):
        x = tp.randn(4, 8)
        for one, other in zip(results(model, model, x), results(model, compiled, x), strict=True):
            assert tp.equal(one, other)
    explained = compiled.explain()
    assert (len(explained.graphs), explained.calls, explained.eager) == (1, 3, 0)


def saved_bytes(model, x):
    graph = capture(model, x)
    graph.result = [graph.result]
    given = iter([x.clone().requires_grad_()])
    inputs = [graph.state[v.name] if v.name in graph.state else next(given) for v in graph.inputs]
    joint = join(graph, inputs)
    kept = joint.backward.inputs[: joint.saved]
    own = {value.name for value in graph.inputs}
    return sum(math.prod(v.shape) * v.dtype.itemsize for v in kept if v.name not in own)


def test_what_runs_again_is_not_saved():
    x = tp.randn(64, 8)
    rows = 64 * 8 * 4
    assert saved_bytes(Nested(), x) == 0
    with_checkpoints, without = (saved_bytes(Stack(run), x) for run in (again, plainly))
    assert with_checkpoints == 2 * rows  # the second and third block's inputs
    assert without > 3 * 4 * rows  # the wide activations of each


def test_random_numbers_are_those_of_the_first_run():
    x = tp.randn(64, 8)
    rows = 64 * 8 * 4
    assert saved_bytes(Stack(drop=0.5), x) <= 5 * rows + 3 * rows // 4


def contexts():
    return noop_context_fn()


class Counting(Stack):
    def __init__(self):
        super().__init__()
        self.statistics = nn.BatchNorm1d(8)

    def forward(self, x):
        return again(lambda x: self.statistics(super(Counting, self).forward(x)), x)


class Reading(Stack):
    """Its checkpoints read data, and break off where others are captured."""

    def __init__(self, breaks):
        super().__init__(drop=0.5 if breaks else 0.0)
        self.breaks = breaks

    def forward(self, x):
        def part(block, x):
            x = block(x)
            if self.breaks:
                x = x + len(str(x.detach().numpy())) * 0
            return x if x.abs().sum() > 0 else -x

        for block in self.blocks:
            x = again(part, block, x)
        return x


@pytest.mark.parametrize("breaks", [False, True])
def test_checkpoints_that_read_data(breaks):
    tp.manual_seed(0)
    model = Reading(breaks)
    compiled = tp.compile(model)
    for _ in range(4):
        x = tp.randn(4, 8)
        for one, other in zip(results(model, model, x), results(model, compiled, x), strict=True):
            assert tp.equal(one, other)
    assert bool(compiled.explain().breaks) is breaks


@pytest.mark.parametrize(
    "make",
    [
        Counting,
        Slopes,
        lambda: Stack(lambda block, x: again(block, x, context_fn=contexts)),
        lambda: Stack(lambda block, x: again(block, x, preserve_rng_state=False)),
        lambda: Stack(lambda block, x: checkpoint(block, x, use_reentrant=True)),
    ],
    ids=[
        "state is written",
        "gradients within",
        "contexts of its own",
        "other random numbers",
        "reentrant",
    ],
)
def test_other_checkpoints_stay_eager(make):
    tp.manual_seed(0)
    model, twin = make(), make()
    twin.load_state_dict(model.state_dict())
    compiled = tp.compile(twin)
    for _ in range(3):
        x = tp.randn(4, 8)
        wanted, found = results(model, model, x), results(twin, compiled, x)
        for one, other in zip(wanted, found, strict=True):
            assert tp.equal(one, other)
        for one, other in zip(model.buffers(), twin.buffers(), strict=True):
            assert tp.equal(one, other)
    assert compiled.explain().breaks


@pytest.mark.parametrize(
    "around", [contextlib.nullcontext, lambda: tp.autocast("cpu", enabled=False)]
)
def test_steps_after_the_first_are_one_node(around):
    model = Stack()
    compiled = tp.compile(model)
    x = tp.randn(4, 8)
    for step in range(3):
        with around():
            result = compiled(x)
        assert step == 0 or result.grad_fn.name() == "CompiledFunctionBackward"
        result.sum().backward()


def peak(run):
    """Return how many bytes a training step takes at most, of those allocated in it."""
    model = Stack(plainly)
    compiled = run(model)
    x = tp.randn(512, 8)
    for measured in (False, False, False, True):
        for parameter in model.parameters():
            parameter.grad = None
        if measured:
            tracemalloc.start()
        compiled(x).square().mean().backward()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_what_is_saved_goes_once_the_gradient_has_used_it():
    assert peak(tp.compile) < 1.1 * peak(lambda model: model)
