"""The profiler sees kernels, ranges and nodes, forward and backward, and leaves nothing behind."""

import json
import threading

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry, profiling
from tensorplug.core.plugins import plugin_label
from tensorplug.profiler import ProfilerAction, profile, record_function, schedule

MUL = op_registry.get_op("mul").index


def kernels(events):
    return [event.name for event in events if event.category == "kernel"]


def test_kernels_are_recorded_with_who_ran_them():
    x = tp.ones(2, 3)
    with profile(record_shapes=True) as p:
        x * x
        tp.exp(x)
    x * x
    assert kernels(p.events()) == ["mul", "exp"]
    mul = p.events()[0]
    choice = tp.explain("mul")
    winner = choice.kernel.plugin
    assert (mul.device, mul.dtype, mul.plugin, mul.count) == ("cpu", "float32", winner, 1)
    assert mul.input_shapes == [[2, 3], [2, 3]]
    assert mul.thread == threading.get_ident()
    assert mul.cpu_time_total > 0
    # The record is the one that explain() gives.
    assert (mul.choice.way, mul.choice.kernel) == (choice.way, choice.kernel)
    assert str(mul.choice) == str(choice)


def test_nothing_is_left_behind():
    x = tp.ones(2)
    x * x
    kernel = x._key.kernels[MUL]
    with profile():
        x * x
        assert x._key.kernels[MUL] is not kernel
    assert profiling.current() is None
    x * x
    assert x._key.kernels[MUL] is kernel
    assert x._key.writers[MUL] is kernel


def test_ranges_nest_and_are_seen_in_backward():
    w = tp.ones(3, requires_grad=True)

    @record_function("second")
    def second(x):
        return x.sin()

    with profile() as p:
        with record_function("first"):
            y = w * 2
            with record_function("inner"):
                y = y.exp()
        z = second(y).sum()
        with record_function("pass"):
            z.backward()
    events = p.events()
    found = [(event.key, event.ranges) for event in events if event.category == "range"]
    assert found == [
        ("first", ()),
        ("inner", ("first",)),
        ("second", ()),
        ("pass", ()),
        # The nodes stand in the ranges of their forward ops, opened in the order of the pass.
        ("second (backward)", ("pass",)),
        ("first (backward)", ("pass",)),
        ("inner (backward)", ("pass", "first")),
    ]
    nodes = {event.name: event.ranges for event in events if event.category == "node"}
    assert nodes == {
        "SumBackward0": ("pass",),  # made outside of all ranges
        "SinBackward0": ("second",),
        "ExpBackward0": ("first", "inner"),
        "MulBackward0": ("first",),
    }
    cos = next(event for event in events if event.name == "cos")
    assert cos.is_backward
    assert cos.ranges == ("second",)
    inner = tp.exp(tp.full((3,), 2.0))
    assert w.grad.tolist() == pytest.approx((2 * inner * inner.cos()).tolist())


def test_a_range_without_a_profile_records_nothing():
    w = tp.ones(1, requires_grad=True)
    with record_function("alone"):
        y = w * w
        assert profiling.local.ranges == ("alone",)
    assert profiling.local.ranges == ()
    assert y.grad_fn.extra is None
    with pytest.raises(TypeError, match="expected a name, got int"):
        record_function(1)


def test_a_range_ends_with_an_exception():
    with profile() as p, pytest.raises(ValueError, match="within"), record_function("broken"):
        raise ValueError("within")
    assert [event.key for event in p.events()] == ["broken"]
    assert profiling.local.ranges == ()


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_the_same_under_a_profile(create_graph):
    def gradients():
        tp.manual_seed(0)
        model = tp.nn.Sequential(tp.nn.Linear(3, 4), tp.nn.Tanh(), tp.nn.Linear(4, 2))
        x = tp.randn(5, 3, requires_grad=True)
        values, places = model(x).max(1)
        (values.sum() + (x.unbind(1)[0] * places).sum()).backward(create_graph=create_graph)
        return [x.grad.tolist(), *[p.grad.tolist() for p in model.parameters()]]

    expected = gradients()
    with profile(), record_function("all"):
        assert gradients() == expected


def test_an_error_in_backward_leaves_no_range_open():
    w = tp.ones(1, requires_grad=True)
    with profile():
        with record_function("forward"):
            y = (w * w).sum()
        w.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert (profiling.local.ranges, profiling.local.backward) == ((), False)


def test_all_threads_are_seen():
    x = tp.ones(4)
    found = []

    def work():
        with record_function("worker"):
            x.exp()
        found.append(threading.get_ident())

    with profile() as p:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x.sin()
    threads = {event.name: event.thread for event in p.events()}
    assert threads == {"worker": found[0], "exp": found[0], "sin": threading.get_ident()}
    assert found[0] != threading.get_ident()


def test_copies_between_devices_and_other_ways_than_kernels():
    with profile() as p:
        tp.ones(3).to("meta")
        tp.ones(2, device="meta") * 2
    assert [event.key for event in p.events() if event.category != "kernel"] == ["copy cpu to meta"]
    assert {event.device for event in p.events() if event.category == "kernel"} == {"cpu"}


def test_time_of_events_inside_is_not_self_time():
    with profile() as p, record_function("outer"):
        tp.ones(1000).exp()
    outer, *inner = p.events()
    assert outer.name == "outer"
    within = sum(event.cpu_time_total for event in inner)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - within)
    assert p.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert p.total_average().count == len(p.events())


def test_averages_and_table():
    x = tp.ones(4)
    with profile(record_shapes=True) as p:
        x.exp()
        x.exp()
        tp.ones(2, 2).exp()
        x.to(tp.float64).sin()
    rows = {row.key: row for row in p.key_averages()}
    assert rows["exp"].count == 3
    assert rows["exp"].cpu_time == pytest.approx(rows["exp"].cpu_time_total / 3)
    by_shape = p.key_averages(group_by_input_shape=True)
    assert sorted(row.count for row in by_shape if row.key == "exp") == [1, 2]
    table = p.key_averages().table(sort_by="count", row_limit=1)
    lines = table.splitlines()
    assert lines[0].split()[:3] == ["Name", "Device", "Kernel"]
    assert lines[2].split()[:3] == ["exp", "cpu", tp.explain("exp").kernel.plugin]
    assert lines[2].split()[-1] == "3"
    assert lines[3] == f"… {len(rows) - 1} more"
    assert lines[4].startswith("In kernels: ")
    for name in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "self_toy_time_total"):
        assert "exp" in p.key_averages().table(sort_by=name)
    with pytest.raises(ValueError, match=r"sort_by must be .* got 'speed'"):
        p.key_averages().table(sort_by="speed")
    assert len(str(p.events()).splitlines()) == len(p.events()) + 3
    assert "…" in p.table(row_limit=1)


def test_the_trace_is_written_whole_or_not_at_all(tmp_path):
    with profile() as p, record_function("step"):
        tp.ones(2).exp()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(path)
    trace = {event["name"]: event for event in json.loads(path.read_text())["traceEvents"]}
    assert trace["step"]["cat"] == "range"
    exp = trace["exp"]
    assert exp["ph"] == "X"
    assert exp["args"]["ranges"] == ["step"]
    assert exp["args"]["plugin"] == plugin_label(tp.explain("exp").kernel.plugin)
    assert trace["step"]["ts"] <= exp["ts"]
    assert exp["ts"] + exp["dur"] <= trace["step"]["ts"] + trace["step"]["dur"]
    before = path.read_bytes()
    p.events()[0].ranges = (object(),)  # cannot be written
    with pytest.raises(TypeError):
        p.export_chrome_trace(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_schedule():
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    none, warmup = ProfilerAction.NONE, ProfilerAction.WARMUP
    record, save = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
    assert [plan(step) for step in range(7)] == [none, none, warmup, record, save, none, none]
    with pytest.raises(ValueError, match="active=0"):
        schedule(wait=0, warmup=0, active=0)

    x = tp.ones(2)
    ready = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append(p.events())) as p:
        for _ in range(10):
            x.exp()
            p.step()
    assert [kernels(events) for events in ready] == [["exp"] * 2] * 2
    names = [event.key for event in ready[1] if event.category == "range"]
    assert names == ["ProfilerStep#6", "ProfilerStep#7"]


def test_tensorboard_trace_handler(tmp_path):
    handler = tp.profiler.tensorboard_trace_handler(tmp_path / "log", "worker")
    with profile(on_trace_ready=handler):
        tp.ones(2).exp()
    (written,) = (tmp_path / "log").iterdir()
    assert written.name.startswith("worker.")
    assert written.name.endswith(".pt.trace.json")


def test_misuse():
    with profile() as p:
        with pytest.raises(RuntimeError, match="taken already"):
            profile().start()
        with pytest.raises(RuntimeError, match="no events before the end"):
            p.events()
    with pytest.raises(TypeError, match="unexpected argument 'colour'"):
        profile(colour=True)
    with pytest.warns(UserWarning, match="profile_memory, with_stack has no effect"):
        profile(profile_memory=True, with_stack=True, with_flops=False)
    with profile(enabled=False) as off:
        tp.ones(2).exp()
    assert profiling.current() is None
    with pytest.raises(RuntimeError, match="no events"):
        off.events()


def test_both_names_of_the_module():
    assert tp.autograd.profiler.record_function is tp.profiler.record_function
    assert tp.autograd.profiler.profile is profile
