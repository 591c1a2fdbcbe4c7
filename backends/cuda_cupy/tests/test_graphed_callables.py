"""Graphed callables compute what their sources do, by graphs that are replayed."""

import pytest
from on_device import needs_device

import tensorplug as tp
from tensorplug_cuda_cupy.torch_api import graphed_callables

pytestmark = needs_device


class Counted:
    """A graph that counts its replays."""

    def __init__(self, part, static, graph):
        self.part, self.static, self.graph, self.replays = part, static, graph, 0

    def replay(self):
        self.replays += 1
        self.graph.replay()


@pytest.fixture
def made(monkeypatch):
    """Return the graphs in the order in which they are captured."""
    order, capture = [], graphed_callables.captured

    def captured(static, part, pool, stream):
        order.append(Counted(part, static, capture(static, part, pool, stream)))
        return order[-1]

    monkeypatch.setattr(graphed_callables, "captured", captured)
    return order


@pytest.fixture(autouse=True)
def on_the_device():
    """Make all tensors there."""
    before = tp.get_default_device()
    tp.set_default_device("cuda")
    yield
    tp.set_default_device(before)


def network():
    tp.manual_seed(0)
    return tp.nn.Sequential(tp.nn.Linear(4, 5), tp.nn.Tanh(), tp.nn.Linear(5, 3))


def test_training_with_a_graphed_module(made):
    plain, module = network(), network()
    found = graphed_callables.make_graphed_callables(module, (tp.randn(2, 4),))
    assert found is module
    assert [graph.part for graph in made] == ["forward", "backward"]
    steps = [tp.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (plain, module)]
    for seed in range(4):
        x = tp.randn(2, 4, generator=tp.Generator("cuda").manual_seed(seed))
        losses = []
        for m, step in zip((plain, module), steps, strict=True):
            step.zero_grad()
            loss = m(x).square().mean()
            loss.backward()
            step.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1])
    for one, other in zip(plain.parameters(), module.parameters(), strict=True):
        tp.testing.assert_close(one, other)
    assert [graph.replays for graph in made] == [4, 4]
    module.eval()
    assert module(x).shape == (2, 3)
    assert made[0].replays == 4  # as it was captured in training
    module.train()
    module(x)
    assert made[0].replays == 5


def test_several_callables(made):
    first, second = network(), lambda a, b: {"sum": a + b, "pair": [a * b, (a > 0)]}
    samples = (
        (tp.randn(2, 4),),
        (tp.randn(2, 3, requires_grad=True), tp.randn(2, 3)),
    )
    one, other = graphed_callables.make_graphed_callables(
        (first, second), samples, num_warmup_iters=1
    )
    assert [graph.part for graph in made] == ["forward", "forward", "backward", "backward"]
    assert made[2].static is made[1].static
    x, b = tp.randn(2, 4), tp.randn(2, 3)
    y = one(x)
    result = other(y, b)
    assert list(result) == ["sum", "pair"]
    assert not result["pair"][1].requires_grad
    (result["sum"].sum() + result["pair"][0].sum()).backward()
    plain = network()
    expected = plain(x)
    tp.testing.assert_close(y, expected)
    (expected + b + expected * b).sum().backward()
    plain = network()
    (z := plain(x)).mul(1 + b).sum().backward()
    assert z.shape == y.shape
    for mine, right in zip(first.parameters(), plain.parameters(), strict=True):
        tp.testing.assert_close(mine.grad, right.grad)


def test_inputs_get_gradients(made):
    run = graphed_callables.make_graphed_callables(
        lambda a, b: a * b, (tp.ones(3, requires_grad=True), tp.ones(3))
    )
    a, b = tp.randn(3, requires_grad=True), tp.randn(3)
    run(a, b).backward(tp.full((3,), 2.0))
    tp.testing.assert_close(a.grad, 2 * b)
    with pytest.raises(TypeError, match="captured with 2 arguments and got 1"):
        run(a)
    first = tp.autograd.grad(run(a, b).square().sum(), a, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_nothing_to_differentiate(made):
    run = graphed_callables.make_graphed_callables(lambda a: a + 1, (tp.zeros(3),))
    assert run(tp.ones(3)).tolist() == [2.0] * 3
    assert not run(tp.ones(3)).requires_grad


def test_unused_inputs(made):
    samples = (tp.ones(2, requires_grad=True), tp.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="to not have been used"):
        graphed_callables.make_graphed_callables(lambda a, b: a * 2, samples)
    run = graphed_callables.make_graphed_callables(
        lambda a, b: a * 2, samples, allow_unused_input=True
    )
    a, b = tp.ones(2, requires_grad=True), tp.ones(2, requires_grad=True)
    run(a, b).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad is None


def test_what_is_refused(made):
    module = network()
    with pytest.raises(TypeError, match="must contain only tensors, got int"):
        graphed_callables.make_graphed_callables(module, (3,))
    with pytest.raises(TypeError, match="must be a tuple of tensors"):
        graphed_callables.make_graphed_callables((module,), (tp.ones(2, 4),))
    with pytest.raises(RuntimeError, match="2 callables and sample_args for 1"):
        graphed_callables.make_graphed_callables((module, module), ((tp.ones(2, 4),),))
    with pytest.raises(TypeError, match="has to return tensors, got int"):
        graphed_callables.make_graphed_callables(lambda a: 3, (tp.ones(2),))
    handle = module.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        graphed_callables.make_graphed_callables(module, (tp.ones(2, 4),))
    handle.remove()
    module.register_buffer("scale", tp.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        graphed_callables.make_graphed_callables(module, (tp.ones(2, 4),))
    assert made == []


def test_autocast_must_not_keep_casts(made):
    with tp.autocast("cuda", tp.bfloat16), pytest.raises(RuntimeError, match="cache_enabled=False"):
        graphed_callables.make_graphed_callables(network(), (tp.ones(2, 4),))
    with tp.autocast("cuda", tp.bfloat16, cache_enabled=False):
        graphed_callables.make_graphed_callables(network(), (tp.ones(2, 4),))
