"""Streams, events and memory of several streams and devices."""

import pytest

import tensorplug as tp
from tensorplug_cuda_cupy import plugin

REASON = plugin.runtime.unavailable_reason()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no CUDA device: {REASON}")
needs_two = pytest.mark.skipif(
    REASON is not None or plugin.runtime.device_count() < 2, reason="there is one GPU, or none"
)


def test_a_number_first_used_on_one_stream_is_there_on_another():
    x = tp.ones(10, device="cuda")
    side = tp.cuda.Stream()
    with tp.cuda.stream(side):
        busy = tp.ones(1 << 20, device="cuda")
        for _ in range(20):
            busy = busy.exp().log()
        busy * 6.5625
    assert (x * 6.5625).tolist() == [6.5625] * 10


def test_events_in_no_stream():
    event = tp.cuda.Event(enable_timing=True)
    assert event.query()
    assert event.device is None
    event.synchronize()
    event.wait()
    with pytest.raises(RuntimeError, match="recorded"):
        event.elapsed_time(event)
    event.record()
    assert event.device == tp.device("cuda:0")


@needs_two
def test_streams_and_events_of_another_device():
    other = tp.cuda.Stream("cuda:1")
    assert other.device == tp.device("cuda:1")
    default = tp.cuda.default_stream(1)
    assert default != tp.cuda.default_stream(0)
    assert default.device_index == 1
    with tp.cuda.stream(other):
        assert tp.cuda.current_device() == 1
        x = tp.ones(5, device="cuda") * 2
        with tp.cuda.stream(tp.cuda.default_stream(0)):
            assert tp.cuda.current_device() == 0
        assert tp.cuda.current_stream() == other
        assert tp.cuda.current_stream(0) == tp.cuda.default_stream(0)
    assert tp.cuda.current_device() == 0
    tp.cuda.current_stream(0).wait_stream(other)
    default.wait_stream(other)
    y = x * 2
    event = default.record_event()
    event.synchronize()
    assert default.query()
    assert y.tolist() == [4.0] * 5
    with pytest.raises(RuntimeError, match="does not match recording stream's device"):
        event.record(tp.cuda.default_stream(0))
    y = x * 3
    default.synchronize()
    assert default.query()
    tp.cuda.set_stream(other)
    assert tp.cuda.current_device() == 1
    assert tp.cuda.current_stream() == other
    tp.cuda.set_stream(default)
    tp.cuda.set_device(0)


@needs_two
def test_memory_of_another_device_that_a_stream_uses_is_held():
    side = tp.cuda.Stream("cuda:1")
    for _ in range(3):
        x = tp.full((1 << 16,), 3.0, device="cuda:1")
        side.wait_stream(tp.cuda.current_stream(1))
        with tp.cuda.stream(side):
            y = x * 2
        x.record_stream(side)
        del x
        z = tp.zeros(1 << 16, device="cuda:1")
        side.synchronize()
        assert y.sum().item() == 6 << 16
        assert z.sum().item() == 0


@needs_two
def test_a_graph_is_replayed_on_its_device():
    x = tp.ones(4, device="cuda:1")
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.device(1), tp.cuda.graph(graph):
        y = x * 2
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [10.0] * 4


def test_the_backward_runs_on_the_streams_of_the_forward():
    n = 1 << 12
    w = tp.full((n,), 2.0, device="cuda", requires_grad=True)
    first, second = tp.cuda.Stream(), tp.cuda.Stream()
    for stream in (first, second):
        stream.wait_stream(tp.cuda.current_stream())
    with tp.cuda.stream(first):
        x = tp.arange(n, device="cuda", dtype=tp.float32)
        loss = ((w * x).exp().log() * w).sum()
    loss.backward()  # nothing waits for what the stream computes
    with tp.cuda.stream(first):
        again = [tp.full((n,), -1.0, device="cuda") for _ in range(8)]
    assert w.grad[:4].tolist() == pytest.approx([0.0, 4.0, 8.0, 12.0])
    tp.cuda.current_stream().wait_stream(first)
    assert all(other[0] == -1 for other in again)
    w.grad = None
    parts = []
    for stream, factor in ((first, 3.0), (second, 5.0)):
        with tp.cuda.stream(stream):
            parts.append((w * factor).square())
        tp.cuda.current_stream().wait_stream(stream)
    (parts[0] + parts[1]).sum().backward()
    assert w.grad[:2].tolist() == [4.0 * (9 + 25)] * 2


def test_memory_that_is_held_for_a_stream_is_waited_for_where_there_is_no_other():
    tp.cuda.empty_cache()
    size = tp.cuda.mem_get_info()[0] * 5 // 8
    tp.ones(4, device="cuda")
    side = tp.cuda.Stream()
    x = tp.empty(size, dtype=tp.uint8, device="cuda")
    side.wait_stream(tp.cuda.current_stream())
    with tp.cuda.stream(side):
        busy = tp.ones(1 << 16, device="cuda").exp()
        x[0] = 1
    x.record_stream(side)
    del x
    again = tp.empty(size, dtype=tp.uint8, device="cuda")
    assert again.shape == (size,)
    del again
    tp.cuda.empty_cache()
    assert busy.shape == (1 << 16,)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_branches_on_several_streams_give_what_one_stream_gives(seed, create_graph):
    from random import Random

    def graph_of(streams):
        chance = Random(seed)
        made = [tp.randn(300, generator=tp.Generator().manual_seed(seed + n)) for n in range(2)]
        leaves = [x.cuda().requires_grad_() for x in made]
        found = list(leaves)
        for stream in streams:
            stream.wait_stream(tp.cuda.current_stream())
        for _ in range(24):
            stream = streams[chance.randrange(3) % len(streams)]
            x, y = chance.choice(found), chance.choice(found)
            for other in streams:
                stream.wait_stream(other)
            with tp.cuda.stream(stream):
                way = chance.randrange(4)
                if way == 0:
                    found.append((x * y).tanh())
                elif way == 1:
                    found.append(tp.stack([x, y]).sum(0) / 2)
                elif way == 2:
                    a, b = x.view(2, 150).unbind()
                    found.append(tp.cat([b.sin(), a]))
                else:
                    found.append(tp.where(x > y, x, y * 2).exp().log())
            for tensor in (x, y):
                tensor.record_stream(stream)
        for stream in streams:
            tp.cuda.current_stream().wait_stream(stream)
        loss = sum((x * x).sum() for x in (*leaves, *found[-6:]))
        grads = tp.autograd.grad(loss, leaves, create_graph=create_graph)
        del found, loss
        tp.zeros(300, device="cuda") - 1  # memory that was given back too early would be written to
        return [g.cpu() for g in grads]

    expected = graph_of([tp.cuda.default_stream()])
    for _ in range(3):
        found = graph_of([tp.cuda.Stream() for _ in range(3)])
        for one, other in zip(found, expected, strict=True):
            tp.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
