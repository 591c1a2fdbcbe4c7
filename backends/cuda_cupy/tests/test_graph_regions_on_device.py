"""Compiled programs run as CUDA graphs with ``mode="reduce-overhead"``, and do what they do without."""

import itertools
import os
import threading

import numpy as np
import pytest
from on_device import needs_device

import tensorplug as tp
from tensorplug_cuda_cupy.regions import graphs as regions
from tensorplug_cuda_cupy.runtime import graphs

pytestmark = needs_device
F = tp.nn.functional


@pytest.fixture
def replays(monkeypatch):
    """Return the list to which each replay of a graph adds."""
    found = []
    replay = graphs.CUDAGraph.replay

    def noted(graph):
        found.append(graph)
        replay(graph)

    monkeypatch.setattr(graphs.CUDAGraph, "replay", noted)
    return found


class Block(tp.nn.Module):
    """Attention and a feed-forward part, as in GPT."""

    def __init__(self, size=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = tp.nn.LayerNorm(size)
        self.qkv = tp.nn.Linear(size, 3 * size)
        self.out = tp.nn.Linear(size, size)
        self.feed = tp.nn.Sequential(tp.nn.Linear(size, 32), tp.nn.GELU(), tp.nn.Linear(32, size))

    def forward(self, x):
        n, length, size = x.shape
        parts = self.qkv(self.norm(x)).view(n, length, 3, self.heads, size // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, size))
        return x + self.feed(x)


def gpt():
    return tp.nn.Sequential(tp.nn.Embedding(11, 16), Block(), Block(), tp.nn.Linear(16, 5))


def mlp():
    return tp.nn.Sequential(
        tp.nn.Linear(12, 16), tp.nn.ReLU(), tp.nn.Dropout(0.25), tp.nn.Linear(16, 5)
    )


def images():
    return tp.nn.Sequential(
        tp.nn.Conv2d(3, 4, 3), tp.nn.BatchNorm2d(4), tp.nn.ReLU(), tp.nn.MaxPool2d(2),
        tp.nn.Flatten(), tp.nn.Linear(36, 5),
    )  # fmt: skip


def batch_of(make, number):
    generator = np.random.default_rng(number)
    if make is gpt:
        x = tp.tensor(generator.integers(0, 11, (3, 6)))
        return x.cuda(), tp.tensor(generator.integers(0, 5, (3, 6))).cuda()
    shape = (4, 12) if make is mlp else (4, 3, 8, 8)
    x = tp.tensor(generator.standard_normal(shape), dtype=tp.float32)
    return x.cuda(), tp.tensor(generator.integers(0, 5, 4)).cuda()


def trained(make, mode, precision, habit, steps=12):
    """Return the losses, weights and gradients of a training in one of several habits of loops."""
    tp.manual_seed(0)
    model = make().cuda()

    def forward(x):
        with tp.autocast("cuda", tp.bfloat16, enabled=precision == "bfloat16"):
            return model(x)

    run = forward if mode is None else tp.compile(forward, mode=mode)
    optimizer = tp.optim.AdamW(model.parameters(), lr=0.01)
    losses, kept, fixed = [], [], batch_of(make, 0)
    for number in range(steps):
        x, y = fixed if habit == "one batch" else batch_of(make, number)
        if habit != "gradients add up" or number % 3 == 0:
            optimizer.zero_grad()
        result = run(x).float()
        loss = F.cross_entropy(result.flatten(0, -2), y.flatten())
        if habit == "two before backward":
            loss = loss + F.cross_entropy(run(x).float().flatten(0, -2), y.flatten())
        if habit == "results kept":
            kept.append(result)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if habit == "evaluated between" and number % 4 == 3:
            with tp.no_grad():
                losses.append(run(x).float().sum())
    state = [value for p in model.parameters() for value in (p.detach(), p.grad)]
    return [value.cpu() for value in (*losses, *kept, *state, *model.buffers())]


HABITS = (
    "one batch", "new batches", "results kept", "two before backward", "gradients add up",
    "evaluated between",
)  # fmt: skip


#: All of them with TENSORPLUG_FUZZ; otherwise one precision and network for each habit.
CASES = [
    (make, precision, habit)
    for number, habit in enumerate(HABITS)
    for other, (make, precision) in enumerate(
        itertools.product((gpt, mlp, images), ("float32", "bfloat16"))
    )
    if "TENSORPLUG_FUZZ" in os.environ or number == other
]


@pytest.mark.parametrize(("make", "precision", "habit"), CASES)
def test_trainings_are_the_same_bit_for_bit(make, precision, habit, replays):
    compiled = trained(make, "default", precision, habit)
    assert not replays
    captured = trained(make, "reduce-overhead", precision, habit)
    assert len(replays) > 4
    for found, wanted in zip(captured, compiled, strict=True):
        assert tp.equal(found, wanted)


def function(x, y):
    return (x @ y).relu().sum(1), (x + y).exp()


def settled(run, *arguments, calls=6):
    with tp.no_grad():
        for _ in range(calls):
            result = run(*arguments)
    return result


@pytest.fixture
def compiled():
    return tp.compile(function, mode="reduce-overhead")


def rows(start):
    return tp.linspace(start, start + 1, 16, device="cuda").reshape(4, 4)


def assert_same(found, x, y):
    for one, other in zip(found, function(x, y), strict=True):
        assert tp.equal(one, other)


def test_results_that_are_held_are_not_overwritten(compiled, replays):
    y = rows(0)
    held = []
    with tp.no_grad():
        for number in range(12):
            x = rows(number)
            held.append((x, compiled(x, y)[1].T[1:]))  # a view of the second one
        for x, result in held:
            assert tp.equal(result, function(x, y)[1].T[1:])
    assert len(replays) > 4


def test_what_moves_is_copied_and_what_stays_is_read(compiled, replays):
    weight = rows(0)
    with tp.no_grad():
        batches = [rows(number) for number in range(12)]
        for number, x in enumerate(batches):
            if number % 2:
                weight.mul_(1.5)  # in its place
            result = compiled(x, weight)
            assert_same(result, x, weight)
            del result
    assert len(replays) > 4


def test_another_stream_or_setting_captures_anew(compiled, replays):
    x, y = rows(0), rows(1)
    settled(compiled, x, y)
    first = replays[-1]
    with tp.cuda.stream(tp.cuda.Stream()):
        tp.cuda.current_stream().wait_stream(tp.cuda.default_stream())
        result = settled(compiled, x, y)
        assert_same(result, x, y)
        assert replays[-1] is not first
        tp.cuda.current_stream().synchronize()
    del result
    second = replays[-1]
    tp.use_deterministic_algorithms(True)
    try:
        settled(compiled, x, y)
    finally:
        tp.use_deterministic_algorithms(False)
    assert replays[-1] is not second


def test_what_cannot_be_captured_runs_by_its_kernels(replays):
    def waits(x):
        return tp.linalg.qr(x.relu() + 1.0)[1].exp() + x

    compiled = tp.compile(waits, mode="reduce-overhead")
    x = rows(0)
    result = settled(compiled, x)
    assert tp.equal(result, waits(x))
    assert not tp.plugins.quarantined_fusers()


def test_a_graph_of_the_users_holds_the_kernels(compiled, replays):
    x, y = rows(0), rows(1)
    settled(compiled, x, y)
    count = len(replays)
    graph = tp.cuda.CUDAGraph()
    with tp.no_grad(), tp.cuda.graph(graph):
        result = compiled(x, y)
    assert len(replays) == count
    x.add_(1)
    graph.replay()
    assert_same(result, x, y)
    fresh = tp.compile(function, mode="reduce-overhead")
    graph = tp.cuda.CUDAGraph()
    settled(fresh, x, y, calls=2)
    count = len(replays)
    with tp.no_grad(), tp.cuda.graph(graph):
        results = [fresh(x, y) for _ in range(4)]  # none of which captures on its own
    assert len(replays) == count
    graph.replay()
    for result in results:
        assert_same(result, x, y)


def test_views_of_what_goes_in_show_it(replays):
    run = regions.Replayed(lambda arrays: [arrays[0].T[1:], arrays[0] + arrays[1]])
    fixed = rows(0)._array
    given = [rows(number)._array for number in range(8)]
    for array in given:
        found = run([array, fixed])
        if found is not None:
            assert found[0].data.ptr == array.T[1:].data.ptr
            assert found[0].strides == array.T[1:].strides
            assert (found[1] == array + fixed).all()
        found = None
    assert len(replays) > 3


def test_threads_get_their_own_results(compiled):
    x, y = rows(0), rows(1)
    settled(compiled, x, y)
    faults = []

    def work(start):
        own = rows(start)
        with tp.no_grad():
            for _ in range(10):
                result = compiled(own, y)
                if not tp.equal(result[1], (own + y).exp()):
                    faults.append(start)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_other_modes_capture_nothing(replays):
    settled(tp.compile(function), rows(0), rows(1))
    settled(tp.compile(function, mode="max-autotune-no-cudagraphs"), rows(0), rows(1))
    assert not replays
    with pytest.raises(ValueError, match="the mode is one of default, reduce-overhead"):
        tp.compile(function, mode="fastest")
    settled(tp.compile(function, backend="cudagraphs"), rows(0), rows(1))
    assert replays


def test_captures_end_where_nothing_settles(monkeypatch, compiled, replays):
    monkeypatch.setattr(regions, "_MOST_CAPTURES", 2)
    x, y = rows(0), rows(1)
    for number in range(4):
        tp.set_float32_matmul_precision("high" if number % 2 else "highest")
        try:
            assert_same(settled(compiled, x, y, calls=4), x, y)
        finally:
            tp.set_float32_matmul_precision("highest")
    assert len({id(graph) for graph in replays}) == 2
