"""Streams, events and graphs: work is queued, and queued again as a whole."""

import pytest
from on_device import BUSY, needs_device

import tensorplug as tp

pytestmark = needs_device

# By the optimizer: its options where a graph is to capture a step.
OPTIMIZERS = [
    ("SGD", {"lr": 0.01, "momentum": 0.9}),
    ("Adam", {"foreach": False, "amsgrad": True, "capturable": True}),
    ("AdamW", {"lr": 0.01, "capturable": True}),
    *[
        (name, {"weight_decay": 0.1, "capturable": True})
        for name in ("Adadelta", "Adamax", "NAdam", "RAdam")
    ],
    ("RAdam", {"betas": (0.9, 0.99), "decoupled_weight_decay": True, "capturable": True}),
    ("ASGD", {"lr": 0.05, "t0": 4.0, "capturable": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "capturable": True}),
    ("Rprop", {"capturable": True}),
]


def test_streams_and_events():
    side = tp.cuda.Stream()
    begin, end = tp.cuda.Event(enable_timing=True), tp.cuda.Event(enable_timing=True)
    x = tp.ones(1000, device="cuda")
    side.wait_stream(tp.cuda.current_stream())
    with tp.cuda.stream(side):
        assert tp.cuda.current_stream() == side
        begin.record()
        y = x * 2
        end.record()
    assert tp.cuda.current_stream() != side
    tp.cuda.current_stream().wait_stream(side)
    assert y.sum().item() == 2000
    end.synchronize()
    assert end.query()
    assert begin.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        begin.elapsed_time(tp.cuda.Event())


def test_a_graph_runs_again_on_new_input():
    x = tp.zeros(100, device="cuda")
    for _ in range(2):
        y = (x * 2 + 1).sum()
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y = (x * 2 + 1).sum()
    for value in (0.0, 1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 100 * (2 * value + 1)
    with pytest.raises(RuntimeError, match="in use"):
        graph.capture_begin()
    graph.reset()
    with pytest.raises(RuntimeError, match="holds nothing"):
        graph.replay()


def test_work_is_queued_and_not_waited_for():
    a = tp.randn(BUSY, BUSY, device="cuda")
    b = a @ a
    tp.cuda.synchronize()
    for _ in range(1000):
        b = a @ a
    assert not tp.cuda.current_stream().query()
    assert b.shape == a.shape


def test_random_numbers_of_a_graph_go_on():
    x = tp.ones(1000, device="cuda")
    tp.manual_seed(0)
    expected = [tp.nn.functional.dropout(x).cpu() for _ in range(3)]
    tp.nn.functional.dropout(x)
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y = tp.nn.functional.dropout(x)
    tp.manual_seed(0)
    for right in expected:
        graph.replay()
        assert tp.equal(y.cpu(), right)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_training_step_in_a_graph_follows_the_one_without(name, options):
    found = []
    for captured in (False, True):
        tp.manual_seed(0)
        model = tp.nn.Sequential(tp.nn.Linear(20, 30), tp.nn.GELU(), tp.nn.Linear(30, 5)).to("cuda")
        optimizer = getattr(tp.optim, name)(model.parameters(), **options)
        x, target = tp.randn(8, 20, device="cuda"), tp.randint(0, 5, (8,), device="cuda")

        def step(model=model, optimizer=optimizer, x=x, target=target):
            optimizer.zero_grad(set_to_none=False)
            loss = tp.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        side = tp.cuda.Stream()
        side.wait_stream(tp.cuda.current_stream())
        with tp.cuda.stream(side):
            for _ in range(3):
                step()
        tp.cuda.current_stream().wait_stream(side)
        if captured:
            graph = tp.cuda.CUDAGraph()
            with tp.cuda.graph(graph):
                loss = step()
            for _ in range(4):
                graph.replay()
        else:
            for _ in range(4):
                loss = step()
        found.append((loss.item(), [p.detach().cpu() for p in model.parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        tp.testing.assert_close(one, other)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS[1:])
def test_steps_and_rates_on_the_device_follow_the_host(name, options):
    found = []
    for device in ("cpu", "cuda"):
        parameter = tp.linspace(-1, 1, 12, dtype=tp.float64).to(device).requires_grad_()
        rate = tp.tensor(0.02, device=device)
        given = {**options, "lr": rate, "capturable": device == "cuda"}
        optimizer = getattr(tp.optim, name)([parameter], **given)
        for number in range(12):
            rate.fill_(0.02 / (1 + number))
            optimizer.zero_grad()
            (parameter.square() * (1 + number)).sum().backward()
            optimizer.step()
        found.append(parameter.detach().cpu())
        assert optimizer.state[parameter]["step"].device.type == device
    tp.testing.assert_close(*found, rtol=1e-5, atol=1e-6)  # the counts and rates are of float32


def test_a_graph_keeps_the_memory_of_what_lies_between():
    side, graph, x = tp.cuda.Stream(), tp.cuda.CUDAGraph(), tp.ones(1 << 16, device="cuda")
    with tp.cuda.graph(graph, stream=side):
        y = (x * 2 + 1).sum()
    with tp.cuda.stream(side):
        others = [tp.zeros(1 << 16, device="cuda") for _ in range(8)]
        graph.replay()
        assert y.item() == 3 << 16
        assert not any(other.any().item() for other in others)
