"""Compiled programs do what the programs do, whatever changes between the calls."""

import copy
import functools
import os
import pickle
import random

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.graph import Uncapturable


def equal(a, b):
    a, b = (tp.utils._pytree.tree_leaves(tree) for tree in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype
        assert np.array_equal(x.detach().numpy(), y.detach().numpy(), equal_nan=True)


def network():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(4 * 36, 5), nn.GELU(),
    )  # fmt: skip


def counts(compiled):
    found = compiled.explain()
    return len(found.graphs), found.captures, found.calls, found.eager


def test_explanations_have_torchs_names():
    captured = tp.compile(lambda x: (x * 2).exp() + 1)
    broken = tp.compile(lambda x: x * x.sum().item())
    with tp.no_grad():
        for number in range(10):
            captured(tp.ones(3))
            broken(tp.tensor([1.0, number]))
    found = captured.explain()
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 3)
    found = broken.explain()
    assert found.graph_count == len(found.graphs)
    assert found.graph_break_count == 1
    assert "8 graphs" in found.break_reasons[0].reason


def test_batch_sizes_are_one_graph():
    module = network().eval()
    compiled = tp.compile(module)
    with tp.no_grad():
        for batch in (2, 2, 3, 3, 5, 8, 5, 1, 1, 2):
            x = tp.randn(batch, 3, 8, 8)
            tp.testing.assert_close(compiled(x), module(x))  # the normalisation is folded
    assert counts(compiled) == (1, 5, 5, 0)
    assert "float32[s0, 144]" in str(compiled.explain())


def test_a_size_with_other_calls_is_another_graph():
    @tp.compile
    def function(x):
        return x.exp() if x.shape[0] > 4 else x.flatten() + x.shape[0]

    for size in (2, 3, 4, 5, 6, 7, 2, 7):
        x = tp.randn(size, 2)
        equal(function(x), function._function(x))
    assert counts(function) == (2, 6, 2, 0)


@pytest.mark.parametrize("dynamic", [None, False])
def test_sizes_in_arguments(dynamic):
    @tp.compile(dynamic=dynamic)
    def function(x):
        rows, columns = x.shape
        return x.reshape(rows * columns // 2, 2)[: rows - 1] * columns

    for rows in (2, 4, 6, 4):
        x = tp.randn(rows, 4)
        equal(function(x), function._function(x))
    assert counts(function) == (1 if dynamic is None else 3, 3, 1, 0)


def test_training():
    tp.manual_seed(0)
    module = network()
    twin = copy.deepcopy(module)
    compiled = tp.compile(module)
    optimizers = [tp.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (module, twin)]
    for step in range(6):
        if step == 4:
            module.eval()
            twin.eval()
        x = tp.randn(4, 3, 8, 8)
        for each, optimizer in zip((compiled, twin), optimizers, strict=True):
            tp.manual_seed(step)
            optimizer.zero_grad()
            each(x).square().sum().backward()
            optimizer.step()
        equal([p.grad for p in module.parameters()], [p.grad for p in twin.parameters()])
        equal(dict(module.state_dict()), dict(twin.state_dict()))
    assert counts(compiled) == (2, 2, 4, 0)


def test_what_is_read_selects_the_graph():
    @tp.compile
    def function(x):
        total = x.sum()
        if total > 0:
            x = x * 2
        return x + int(x.argmax()) if x.max() < 100 else x.sqrt()

    data = [
        tp.tensor(row) for row in ([1.0, 2.0], [-1.0, -2.0], [4.0, 3.0], [100.0, 1.0], [1.0, 2.0])
    ]
    for x in data * 2:
        equal(function(x), function._function(x))
    assert counts(function) == (4, 4, 6, 0)
    assert not function.explain().breaks


def test_too_many_ways_stay_eager():
    function = tp.compile(lambda x: x * x.sum().item())
    for number in range(20):
        x = tp.tensor([1.0, number])
        equal(function(x), x * x.sum())
    _, captures, calls, eager = counts(function)
    assert (captures, calls, eager) == (8, 0, 12)
    assert "8 graphs" in function.explain().breaks[0].reason


def test_shapes_from_data():
    function = tp.compile(lambda x: x[x > 0] * 2)
    for row in ([1.0, -1.0], [2.0, 3.0], [4.0, -5.0], [-1.0, 1.0]):
        x = tp.tensor(row)
        equal(function(x), x[x > 0] * 2)
    assert counts(function)[2] == 2


SCALE = [2.0]


class Config:
    def __init__(self):
        self.factor = 3.0
        self.nested = {"shift": [1.0]}


def test_python_state():
    config = Config()
    power = 2

    @tp.compile
    def function(x, flag=False):
        y = x * SCALE[0] + config.nested["shift"][0]
        return (-y if flag else y) ** power * config.factor

    x = tp.randn(3)

    def check():
        equal(function(x), function._function(x))
        equal(function(x, flag=True), function._function(x, flag=True))

    check()
    check()
    assert counts(function)[1:3] == (2, 2)
    config.factor = 5.0
    check()
    config.nested["shift"][0] = 7.0
    check()
    power = 3
    check()
    try:
        SCALE[0] = 4.0
        check()
        check()
    finally:
        SCALE[0] = 2.0
    assert counts(function)[1] == 10


def test_modules_that_change():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = tp.compile(module)
    x = tp.randn(3, 2)

    def check():
        for _ in range(2):
            tp.manual_seed(1)
            made = compiled(x)
            tp.manual_seed(1)
            equal(made, module(x))

    check()
    module.eval()
    check()
    module[0].weight = nn.Parameter(tp.ones(2, 2))
    check()
    with tp.no_grad():
        module[0].weight.mul_(2)
    module[0].bias.data = tp.ones(2)
    check()
    module[1] = nn.Tanh()
    check()
    handle = module[0].register_forward_hook(lambda module, args, result: result + 1)
    check()
    handle.remove()
    check()
    module.to(tp.float64)
    x = x.double()
    check()


LOG = []


def appends(x):
    LOG.append(1)
    return x + 1


def counter():
    total = [0]

    def function(x):
        total[0] += 1
        return x + total[0]

    return function


def counts_in_attribute():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    return Counting()


@pytest.mark.parametrize("make", [lambda: appends, counter, counts_in_attribute])
def test_side_effects_stay(make):
    compiled, plain = tp.compile(make()), make()
    before = len(LOG)
    for _ in range(3):
        equal(compiled(tp.ones(2)), plain(tp.ones(2)))
    assert len(LOG) - before in (0, 6)
    assert compiled.explain().calls == 0
    assert "changes" in compiled.explain().breaks[0].reason


def test_printing_and_random_numbers_of_python_stay(capsys):
    @tp.compile
    def function(x):
        print("called")
        return x

    @tp.compile
    def other(x):
        return x * random.random()

    for _ in range(2):
        function(tp.ones(1))
    assert capsys.readouterr().out == "called\ncalled\n"
    assert other(tp.ones(1)) != other(tp.ones(1))


def test_arguments_are_written():
    @tp.compile
    def function(x, y):
        x.add_(1)
        y[0] = x[0]
        return x * 2, x

    a, b = tp.zeros(3), tp.ones(3)
    for number in range(3):
        made, same = function(a, b)
        equal((a, b[0], made), (tp.full((3,), number + 1.0), tp.tensor(number + 1.0), 2 * a))
        assert same is a
        assert a._version == number + 1


def test_views_and_arguments_that_share_memory_stay_eager():
    view = tp.compile(lambda x: x[0])
    x = tp.zeros(2, 2)
    view(x).add_(1)
    view(x).add_(1)
    equal(x, tp.tensor([[2.0, 2.0], [0.0, 0.0]]))
    both = tp.compile(lambda x, y: x.add_(1) * y)
    for _ in range(2):
        equal(both(x, x[0]), x * x[0])


def test_random_numbers():
    function = tp.compile(lambda x: nn.functional.dropout(x) + tp.randn(3))
    for seed in (1, 2, 3):
        tp.manual_seed(seed)
        made = function(tp.ones(3))
        tp.manual_seed(seed)
        equal(made, function._function(tp.ones(3)))
    assert counts(function)[2] == 2


def test_fullgraph():
    function = tp.compile(lambda x: x if x.sum() > 0 else -x, fullgraph=True)
    with pytest.raises(Uncapturable, match="reads data: item"):
        function(tp.ones(2))
    with pytest.raises(ValueError, match="the backend is one of"):
        tp.compile(lambda x: x, backend="none")


def test_autograd_functions_and_hooks_stay():
    seen = []

    def function(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(1))
        return y.sum()

    compiled = tp.compile(function)
    for _ in range(2):
        compiled(tp.ones(2, requires_grad=True)).backward()
    assert len(seen) == 2
    assert "register_hook() is no op" in compiled.explain().breaks[0].reason


def test_under_layers_and_transforms():
    compiled = tp.compile(lambda x: (x * x).sum())
    x = tp.randn(3)
    equal(tp.func.grad(compiled)(x), 2 * x)
    equal(
        tp.func.vmap(compiled)(tp.stack([x, 2 * x])), tp.stack([(x * x).sum(), (4 * x * x).sum()])
    )
    assert len(tp.graph.capture(compiled, x)) == 2


def test_second_derivatives():
    compiled = tp.compile(lambda x: (x**3).sum())
    for _ in range(2):
        x = tp.tensor([1.0, 2.0], requires_grad=True)
        (first,) = tp.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = tp.autograd.grad(first.sum(), x)
        equal(second, tp.tensor([6.0, 12.0]))


def test_modules_travel():
    module = network().eval()
    compiled = tp.compile(module)
    x = tp.randn(2, 3, 8, 8)
    with tp.no_grad():
        equal(pickle.loads(pickle.dumps(compiled))(x), module(x))
        equal(copy.deepcopy(compiled)(x), module(x))
    assert compiled._orig_mod is module


def test_results_in_memory_of_others_are_not_written():
    """Kernels write into arguments that nobody needs any more, and into no others."""

    @tp.compile
    def function(x, y):
        a = x * 2
        rows = a[1:]
        b = a + y
        c = b.exp()
        return rows * 3, c.relu() - b, (x + y).neg().exp().log1p()

    with tp.no_grad():
        for _ in range(3):
            x, y = tp.randn(3, 3), tp.randn(3, 3)
            kept = x.clone(), y.clone()
            equal(function(x, y), function._function(x, y))
            equal((x, y), kept)


def test_a_planted_fault_is_found(monkeypatch):
    from tensorplug.graph import guards

    monkeypatch.setattr(guards.Watch, "changed", lambda self: "")
    with pytest.raises(AssertionError):
        test_python_state()
    monkeypatch.undo()
    from tensorplug.graph import lowering, steps

    settle = lowering._settle

    def reuses_too_early(tracer):
        settle(tracer)
        for step in tracer.program.steps:
            if isinstance(step, steps.KernelStep) and step.op.pointwise and step.into < 0:
                step.into = step.places()[0]

    monkeypatch.setattr(lowering, "_settle", reuses_too_early)
    monkeypatch.setattr(lowering, "fuse", lambda *_: set())  # fused steps reuse nothing
    with pytest.raises((AssertionError, ValueError)):
        test_results_in_memory_of_others_are_not_written()


def programs(seed):
    """Return a random program of two tensors: pointwise ops, views, writes, reductions."""
    rng = np.random.default_rng(seed)
    steps = [
        (int(rng.integers(0, 10)), int(rng.integers(0, 99)), int(rng.integers(0, 99)))
        for _ in range(int(rng.integers(3, 12)))
    ]

    def function(x, y):
        values = [x, y]
        for kind, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            if kind == 0:
                values.append(a + b)
            elif kind == 1:
                values.append((a * 0.5).tanh())
            elif kind == 2:
                values.append(a.T.contiguous())
            elif kind == 3:
                values.append(a.clone().mul_(b))
            elif kind == 4:
                values.append(a - b.mean(dim=0))
            elif kind == 5:
                z = a * 1
                z[0].copy_(b[1])
                values.append(z)
            elif kind == 6:
                values.append(tp.where(a > b, a, b))
            elif kind == 7:
                values.append(a @ b / 3)
            elif kind == 8:
                z = a + 0
                z.T[1:].relu_()
                values.append(z)
            else:
                values.append(tp.cat([a[:1], b[1:]]))
        return values[2:]

    return function


@pytest.mark.parametrize("seed", range(400 if os.environ.get("TENSORPLUG_FUZZ") else 40))
def test_random_programs(seed):
    function = programs(seed)
    compiled = tp.compile(function)
    for size in (3, 3, 4, 5, 3):
        for recorded in (False, True):
            x, y = tp.randn(size, size), tp.randn(size, size)
            given = [(x.clone().requires_grad_(recorded), y.clone()) for _ in range(2)]
            made, wanted = compiled(*given[0]), function(*given[1])
            equal(made, wanted)
            if recorded and any(t.requires_grad for t in wanted):
                last = [n for n, t in enumerate(wanted) if t.requires_grad][-1]
                for tensors in (made, wanted):
                    tensors[last].square().sum().backward(retain_graph=True)
                equal(given[0][0].grad, given[1][0].grad)
                for tensors in (made, wanted):
                    sum([t.square().sum() for t in tensors]).backward()
                # Of a result that others are made of, the sum of gradients is of another order.
                tp.testing.assert_close(given[0][0].grad, given[1][0].grad)
    assert compiled.explain().eager == 0


def test_batch_norm_is_folded_and_follows_the_weights():
    tp.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4, affine=False),
    )  # fmt: skip
    for _ in range(3):
        module(tp.randn(4, 3, 6, 6) * 3 + 1)
    module.eval()
    compiled = tp.compile(module)
    optimizer = tp.optim.SGD(module.parameters(), lr=0.1)
    for step in range(3):
        x = tp.randn(2, 3, 6, 6)
        with tp.no_grad():
            for _ in range(3):
                tp.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-6)
        optimizer.zero_grad()
        loss = compiled(x).square().sum()
        # Recorded: nothing is folded. Fusers may sum in another order.
        tp.testing.assert_close(loss, module(x).square().sum(), rtol=1e-6, atol=0)
        loss.backward()
        optimizer.step()
        if step:
            module[1].running_mean.add_(1)
    (entry,) = [e for key, es in compiled._compiled._entries.items() if not key[0] for e in es]
    assert [node.name for node in entry.inference] == ["conv2d", "relu", "conv2d"]


def test_new_tensors_that_no_op_made_stay_new():
    function = tp.compile(lambda x: tp.tensor([1.0, 2.0]))
    for _ in range(3):
        made = function(tp.ones(1))
        equal(made, tp.tensor([1.0, 2.0]))
        made.zero_()


# --- state that programs read ---------------------------------------------------------------------


class Settings:
    scale = 1


SETTINGS = Settings()


def scaled(x):
    return x * Settings.scale


def of_an_object(x):
    return x * SETTINGS.scale


def counted(x):
    counted.calls += 1
    return x * counted.calls


def by_the_environment(x):
    return x * len(os.environ.get("TENSORPLUG_TEST", ""))


class OfItsClass(tp.nn.Module):
    scale = 1

    def forward(self, x):
        return x * self.scale


def with_a_helper():
    factor = 1

    def set_factor(value):
        nonlocal factor
        factor = value

    def helper(x):
        return x * factor

    return lambda x: helper(x), set_factor


@pytest.mark.parametrize(
    ("program", "owner"),
    [
        (scaled, Settings),
        (of_an_object, SETTINGS),
        (of_an_object, Settings),
        (OfItsClass(), OfItsClass),
    ],
)
def test_attributes_of_classes_and_objects_are_guarded(program, owner, monkeypatch):
    function, x = tp.compile(program), tp.arange(3)
    for value in (1, 1, 2, 2.0, True, 1):
        monkeypatch.setattr(owner, "scale", value, raising=False)
        equal(function(x), program(x))


def test_closures_of_helpers_are_guarded():
    program, set_factor = with_a_helper()
    function, x = tp.compile(program), tp.arange(3)
    for value in (1, 1, 3, 3.0):
        set_factor(value)
        equal(function(x), program(x))


def test_what_a_function_keeps_stays_with_it():
    counted.calls = 0
    function = tp.compile(counted)
    assert [function(tp.tensor(1)).item() for _ in range(4)] == [1, 2, 3, 4]


def test_the_environment_is_asked_each_time(monkeypatch):
    function, x = tp.compile(by_the_environment), tp.arange(3)
    for value in ("a", "aaa", "", "aa"):
        monkeypatch.setenv("TENSORPLUG_TEST", value)
        equal(function(x), by_the_environment(x))


def test_a_whole_graph_of_a_program_that_fills_a_cache():
    @functools.lru_cache(16)
    def order(ndim):
        return tuple(reversed(range(ndim)))

    def function(x):
        return x.permute(order(x.ndim)) * 2

    compiled = tp.compile(function, fullgraph=True)
    for shape in ((2, 3), (4, 3), (2, 3, 4)):
        for _ in range(3):
            x = tp.randn(shape)
            equal(compiled(x), function(x))
    assert compiled.explain().calls > 2


def test_an_argument_that_is_returned():
    class Cache:
        def __init__(self):
            self.rows, self.count = tp.zeros(4, 3), tp.zeros((), dtype=tp.int64)

        def update(self, position, row):
            self.rows.index_copy_(0, position, row)
            self.count.add_(1)
            return self.rows

    def function(x, position, cache):
        return {"sums": cache.update(position, x).sum(0), "cache": cache}

    compiled = tp.compile(function, fullgraph=True)
    for _ in range(2):  # each cache is of a kind of calls of its own
        cache, expected = Cache(), Cache()
        with tp.no_grad():
            for step in range(4):
                x, position = tp.randn(1, 3), tp.tensor([step])
                found = compiled(x, position, cache)
                equal(found["sums"], function(x, position, expected)["sums"])
                assert found["cache"] is cache
                equal([cache.rows, cache.count], [expected.rows, expected.count])
    assert compiled.explain().calls == 6


def test_an_object_that_is_no_argument_is_not_returned_by_graphs():
    class Box:
        pass

    compiled = tp.compile(lambda x: (x * 2, Box()))
    first, second = compiled(tp.ones(2))[1], compiled(tp.ones(2))[1]
    assert first is not second


def test_numbers_that_differ_in_each_call_take_no_more_memory(monkeypatch):
    monkeypatch.setattr("tensorplug.graph.compiled._MOST_KEYS", 10)
    compiled = tp.compile(lambda x, n: x * n + n)
    for number in range(120):
        assert compiled(tp.ones(1), number).item() == 2 * number
    assert len(compiled._entries) <= 64
    assert len(compiled._eager) <= 10
