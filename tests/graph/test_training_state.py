"""Programs that read and write state: gradients that have them run again see what was there before."""

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph.steps import WriteStep
from tensorplug.plugin import FLOATS, Kernel, hookimpl


class Stateful(nn.Module):
    """Reads a buffer before or after writing it, or both, by a product or a sum."""

    def __init__(self, when, how):
        super().__init__()
        self.linear = nn.Linear(3, 3, dtype=tp.float64)
        self.register_buffer("state", tp.full((3,), 0.5, dtype=tp.float64))
        self.when, self.how = when, how

    def read(self, x):
        state = self.state.clone()
        return x * state if self.how == "product" else (x + state).tanh()

    def forward(self, x):
        y = self.linear(x)
        if self.when != "after":
            y = self.read(y)
        with tp.no_grad():
            self.state.mul_(1.5).add_(y.mean())
        if self.when != "before":
            y = self.read(y)
        return y, y.sin()


def penalized(loss, x):
    (slope,) = tp.autograd.grad(loss, x, create_graph=True)
    return loss + slope.square().sum()


#: What is made of two results.
LOSSES = {
    "penalty": lambda results, x: penalized(results[0].square().sum() + results[1].sum(), x),
    "one": lambda results, x: results[0].square().sum(),
    "other": lambda results, x: results[1].square().sum(),
    "penalty of one": lambda results, x: penalized(results[1].square().sum(), x),
}


def trained(module, called, loss):
    """Return losses, gradients and the state of three steps."""
    x = tp.linspace(-1, 1, 12, dtype=tp.float64).reshape(4, 3).requires_grad_()
    seen = []
    for _ in range(3):
        module.zero_grad()
        value = LOSSES[loss](called(x), x)
        value.backward()
        seen += [
            value.detach(),
            *[p.grad.clone() for p in module.parameters()],
            module.state.clone(),
        ]
    return seen


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", ["product", "sum"])
@pytest.mark.parametrize("when", ["before", "after", "before and after"])
def test_what_runs_again_sees_the_state_of_then(when, how, loss):
    tp.manual_seed(0)
    eager = Stateful(when, how)
    compiled = Stateful(when, how)
    compiled.load_state_dict(eager.state_dict())
    for expected, got in zip(
        trained(eager, eager, loss), trained(compiled, tp.compile(compiled), loss), strict=True
    ):
        tp.testing.assert_close(got, expected)


# --- a kernel that writes statistics ----------------------------------------------------------------------


class Moves:
    name = "moves_statistics"

    def __init__(self):
        self.calls = 0

    def moved(self, mean, var, batch_mean, rstd, momentum, eps, unbiased):
        self.calls += 1
        for old, new in ((mean, batch_mean), (var, (rstd**-2.0 - eps) * unbiased)):
            old[...] = old * (1 - momentum) + new * momentum

    @hookimpl
    def tensorplug_kernels(self):
        return [Kernel("batch_norm_update_stats", "cpu", self.moved, dtypes=FLOATS, priority=1000)]


@pytest.fixture
def moves():
    plugin = Moves()
    tp.plugins.register(plugin)
    yield plugin
    tp.plugins.unregister(Moves.name)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64])
def test_statistics_are_moved_by_a_kernel(moves, dtype, momentum, recorded):
    def network():
        tp.manual_seed(0)
        first = nn.BatchNorm1d(3, momentum=momentum, dtype=dtype)
        return nn.Sequential(first, nn.ReLU(), nn.BatchNorm1d(3, affine=False, dtype=dtype))

    eager, compiled = network(), network()
    run = tp.compile(compiled)
    for number in range(5):
        x = tp.randn(4, 3, dtype=dtype) + number
        seen = []
        for model, call in ((eager, eager), (compiled, run)):
            with tp.set_grad_enabled(recorded):
                result = call(x)
            if recorded:
                model.zero_grad()
                result.square().mean().backward()
            seen.append([result, *model.buffers(), *[p.grad for p in model.parameters()]])
        for expected, got in zip(*seen, strict=True):
            assert (expected is None) == (got is None)
            assert expected is None or tp.equal(got, expected)
    assert moves.calls >= 20  # the gradients are captured by a run more
    if momentum is not None:
        (entry,) = [entry for entries in run._compiled._entries.values() for entry in entries]
        programs = [training.forward for training in entry.trainings.values() if training]
        steps = [step for program in programs or [entry.program] for step in program.steps]
        assert [type(step) for step in steps].count(WriteStep) == 2 * bool(recorded)
