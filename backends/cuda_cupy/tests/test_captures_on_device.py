"""CUDA graphs: what must not spoil a capture, what graphs keep, and errors within."""

import gc
import threading

import pytest

import tensorplug as tp
from tensorplug_cuda_cupy import plugin

REASON = plugin.runtime.unavailable_reason()
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no CUDA device: {REASON}")
nn = tp.nn


def test_a_number_first_used_in_a_capture_is_there_outside_of_it():
    x = tp.ones(10, device="cuda")
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y = x + 1.8125
    assert (x + 1.8125).tolist() == [2.8125] * 10
    graph.replay()
    assert y.tolist() == [2.8125] * 10


def test_a_graph_keeps_the_numbers_that_it_reads():
    x = tp.ones(10, device="cuda")
    x + 2.8125
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y = x + 2.8125
    for i in range(1500):  # more than core keeps
        x + (i + 0.0625)
    gc.collect()
    graph.replay()
    assert y.tolist() == [3.8125] * 10


def test_the_output_of_another_graph_may_go_during_a_capture():
    x = tp.ones(1000, device="cuda")
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        y = x * 2
    graph.reset()
    with tp.cuda.graph(graph):
        y = x * 3  # the last of the first graph's memory goes here
    graph.replay()
    assert y.sum().item() == 3000


def test_graphs_that_share_memory():
    x = tp.ones(1000, device="cuda")
    first, second = tp.cuda.CUDAGraph(), tp.cuda.CUDAGraph()
    with tp.cuda.graph(first):
        a = x * 2
        b = (a + 1) * 3
        del a
    with tp.cuda.graph(second, pool=first.pool()):
        c = b * 2
        d = (c + 1) * 3
        del c
    for value in (1.0, 2.0):
        x.fill_(value)
        first.replay()
        second.replay()
        assert d[0].item() == ((2 * value + 1) * 6 + 1) * 3


def test_what_waits_in_a_capture_says_so_and_leaves_all_usable():
    x = tp.ones(4, device="cuda")
    graph = tp.cuda.CUDAGraph()
    for wait in (
        lambda: x.sum().item(),
        lambda: x.nonzero(),
        tp.cuda.synchronize,
        lambda: print(x),
    ):
        message = r"cannot be captured .* item\(\)"
        with pytest.raises(RuntimeError, match=message), tp.cuda.graph(graph):
            wait()
        assert not tp.cuda.is_current_stream_capturing()
        assert tp.cuda.current_stream() == tp.cuda.default_stream()
        assert (x * 2).sum().item() == 8
        with pytest.raises(RuntimeError, match="holds nothing"):
            graph.replay()
    with pytest.raises(ZeroDivisionError), tp.cuda.graph(graph):
        1 / 0  # noqa: B018
    with pytest.raises(tp.cuda.OutOfMemoryError), tp.cuda.graph(graph):
        tp.empty(1 << 45, dtype=tp.uint8, device="cuda")
    with tp.cuda.graph(graph):
        y = x * 3
    graph.replay()
    assert y.tolist() == [3.0] * 4


def test_copies_from_page_locked_memory_are_captured():
    source, target = tp.ones(8).pin_memory("cuda"), tp.zeros(8).pin_memory("cuda")
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        target.copy_(source.to("cuda", non_blocking=True) * 2, non_blocking=True)
    for value in (1.0, 5.0):
        source.fill_(value)
        graph.replay()
        tp.cuda.synchronize()
        assert target.tolist() == [2 * value] * 8


def test_threads_pin_memory_while_another_captures():
    x = tp.ones(8, device="cuda")
    failed = []

    def pin():
        try:
            tp.ones(100).pin_memory("cuda")
        except RuntimeError as error:
            failed.append(error)

    pin()
    tp.ones(8).to("cuda")
    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        thread = threading.Thread(target=pin)
        thread.start()
        thread.join()
        y = x * 2
    graph.replay()
    assert failed == []
    assert y.tolist() == [2.0] * 8


def test_a_stream_within_a_capture():
    x = tp.ones(1000, device="cuda")
    side, graph = tp.cuda.Stream(), tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        a = x * 2
        side.wait_stream(tp.cuda.current_stream())
        with tp.cuda.stream(side):
            b = a * 3
        a.record_stream(side)
        place = a.data_ptr()
        del a
        others = [x + 7 for _ in range(3)]
        assert all(other.data_ptr() != place for other in others)
        tp.cuda.current_stream().wait_stream(side)
    x.fill_(2)
    graph.replay()
    assert b[0].item() == 12
    assert (x + 1).to("cpu")[0] == 3


def test_the_stream_that_was_chosen_is_current_again():
    side, graph = tp.cuda.Stream(), tp.cuda.CUDAGraph()
    x = tp.ones(3, device="cuda")
    tp.cuda.set_stream(side)
    try:
        with tp.cuda.graph(graph):
            y = x * 2
        assert tp.cuda.current_stream() == side
        with tp.cuda.stream(tp.cuda.Stream()):
            pass
        assert tp.cuda.current_stream() == side
    finally:
        tp.cuda.set_stream(tp.cuda.default_stream())
    graph.replay()
    assert y.tolist() == [2.0] * 3


def images():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(36, 5),
    )  # fmt: skip


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(6, 7, 2, dropout=0.2)
        self.output = nn.Linear(7, 5)

    def forward(self, x):
        return self.output(self.cells(x)[0][-1])


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.output = nn.Linear(8, 5)

    def forward(self, x):
        return self.output(self.layer(self.embedding(x)).mean(1))


@pytest.mark.parametrize(
    ("make", "sample"),
    [
        (images, lambda: tp.randn(4, 2, 8, 8)),
        (Sequences, lambda: tp.randn(5, 4, 6)),
        (Tokens, lambda: tp.randint(0, 11, (4, 6))),
    ],
    ids=["images", "sequences", "tokens"],
)
def test_training_steps_of_networks_follow_those_without_a_graph(make, sample):
    found = []
    for captured in (False, True):
        tp.manual_seed(0)
        model = make().to("cuda")
        optimizer = tp.optim.AdamW(model.parameters(), lr=0.01, fused=True, capturable=True)
        scaler = tp.amp.GradScaler("cuda", init_scale=64.0)
        batches = [(sample(), tp.randint(0, 5, (4,))) for _ in range(6)]
        x, target = (part.to("cuda") for part in batches[0])

        def step(model=model, optimizer=optimizer, scaler=scaler, x=x, target=target):
            optimizer.zero_grad(set_to_none=False)
            with tp.autocast("cuda", tp.float16, cache_enabled=False):
                loss = nn.functional.cross_entropy(model(x).float(), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        side, losses = tp.cuda.Stream(), []
        side.wait_stream(tp.cuda.current_stream())
        with tp.cuda.stream(side):
            for _ in range(3):
                step()
        tp.cuda.current_stream().wait_stream(side)
        if captured:
            graph = tp.cuda.CUDAGraph()
            with tp.cuda.graph(graph):
                loss = step()
        for batch in batches[2:]:
            x.copy_(batch[0])
            target.copy_(batch[1])
            if captured:
                graph.replay()
            else:
                loss = step()
            losses.append(loss.item())
        found.append((losses, [p.detach().cpu() for p in model.parameters()]))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-4)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        tp.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
