"""What the conformance suite does not ask of a CUDA device; and the suite itself. Skipped without one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cuda_cupy import plugin

REASON = plugin.runtime.unavailable_reason()
# Work of this size keeps a GPU busy for a while; on the host nothing is done before it is waited for anyway.
BUSY = 32 if "HOSTED_FOLDER" in os.environ else 4096
pytestmark = pytest.mark.skipif(REASON is not None, reason=f"no CUDA device: {REASON}")


@pytest.fixture(autouse=True, scope="module")
def registered():
    if REASON is None and not any(found.device == "cuda" for found in tp.plugins.installed()):
        from tensorplug_cuda_cupy import amp, networks, optimizers

        for one in (plugin, networks, optimizers, amp):
            tp.plugins.register(one)


def test_presence():
    assert tp.cuda.is_available()
    assert tp.cuda.device_count() >= 1
    assert tp.cuda.get_device_name() == tp.cuda.get_device_properties(0).name
    assert tp.cuda.get_device_capability()[0] >= 5
    assert tp.cuda.is_bf16_supported()


@pytest.mark.skipif("HOSTED_FOLDER" in os.environ, reason="make test-cuda-hosted runs it whole")
def test_conformance():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "--pyargs",
        "tensorplug.testing.conformance",
    ]
    done = subprocess.run(
        [*command, "--device", "cuda", "--every", "20"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_training_follows_the_cpu():
    losses = {}
    for device in ("cpu", "cuda"):
        tp.manual_seed(0)
        model = tp.nn.Sequential(
            tp.nn.Conv2d(1, 4, 3), tp.nn.BatchNorm2d(4), tp.nn.GELU(), tp.nn.MaxPool2d(2), tp.nn.Flatten(),
            tp.nn.Linear(36, 10),
        )  # fmt: skip
        x, target = tp.randn(8, 1, 8, 8), tp.randint(0, 10, (8,))
        model.to(device)
        optimizer = tp.optim.AdamW(model.parameters(), lr=1e-2)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = tp.nn.functional.cross_entropy(model(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-3)


# --- streams ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_a_training_step_in_a_graph_follows_the_one_without(name):
    options = {"lr": 0.01, **({"capturable": True} if name == "AdamW" else {"momentum": 0.9})}
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


def test_graphed_callables_follow_the_plain_module():
    losses = []
    for graphed in (False, True):
        tp.manual_seed(0)
        model = tp.nn.Sequential(tp.nn.Linear(20, 30), tp.nn.GELU(), tp.nn.Linear(30, 5)).to("cuda")
        x = tp.randn(8, 20, device="cuda")
        if graphed:
            model = tp.cuda.make_graphed_callables(model, (x.clone(),))
        optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            loss = model(x + step).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_what_waits_is_said():
    x = tp.ones(3, device="cuda")
    tp.cuda.set_sync_debug_mode("error")
    try:
        y = (x * 2).sum()
        late = y.to("cpu", non_blocking=True)
        for wait in (y.item, y.cpu, lambda: x.nonzero()):
            with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
                wait()
    finally:
        tp.cuda.set_sync_debug_mode("default")
    tp.cuda.synchronize()
    assert late.item() == 6


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_mixed_precision_does_not_wait(dtype):
    model = tp.nn.Sequential(tp.nn.Linear(512, BUSY), tp.nn.ReLU(), tp.nn.Linear(BUSY, 512))
    model.to("cuda")
    optimizer = tp.optim.AdamW(model.parameters(), fused=True)
    scaler = tp.amp.GradScaler("cuda")
    x = tp.randn(BUSY, 512, device="cuda")
    for number in range(20):
        if number == 2:
            tp.cuda.synchronize()
        optimizer.zero_grad()
        with tp.autocast("cuda", dtype):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert not tp.cuda.current_stream().query()
    assert loss.isfinite().item()


def test_memory_that_another_stream_uses_is_held():
    side = tp.cuda.Stream()
    big = tp.randn(BUSY, BUSY, device="cuda")
    for _ in range(5):
        x = tp.full((1 << 20,), 7.0, device="cuda")
        side.wait_stream(tp.cuda.current_stream())
        with tp.cuda.stream(side):
            for _ in range(10):
                big @ big
            y = x * 2
        x.record_stream(side)
        del x
        z = tp.zeros(1 << 20, device="cuda")  # might take the same memory
        side.synchronize()
        assert y.sum().item() == 14 << 20
        assert z.sum().item() == 0


# --- memory -------------------------------------------------------------------------------------


def test_memory_is_counted_and_given_back():
    tp.cuda.synchronize()
    tp.cuda.empty_cache()
    tp.cuda.reset_peak_memory_stats()
    before = tp.cuda.memory_allocated()
    x = tp.empty(1 << 20, dtype=tp.float32, device="cuda")
    assert tp.cuda.memory_allocated() - before == 4 << 20
    assert tp.cuda.max_memory_allocated() >= before + (4 << 20)
    del x
    assert tp.cuda.memory_allocated() == before
    assert tp.cuda.memory_reserved() >= 4 << 20
    tp.cuda.empty_cache()
    assert "peak allocated" in tp.cuda.memory_summary()
    free, total = tp.cuda.mem_get_info()
    assert 0 < free <= total


def test_too_much_memory_is_an_error_that_leaves_the_device_usable():
    with pytest.raises(tp.cuda.OutOfMemoryError, match="CUDA out of memory: tried to allocate"):
        tp.empty(1 << 45, dtype=tp.uint8, device="cuda")
    assert (tp.ones(3, device="cuda") * 2).tolist() == [2.0, 2.0, 2.0]


def test_the_second_iteration_allocates_nothing_from_cuda():
    model = tp.nn.Linear(256, 256).to("cuda")
    optimizer = tp.optim.SGD(model.parameters(), lr=0.1)
    x = tp.randn(64, 256, device="cuda")
    reserved = []
    for _ in range(4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        reserved.append(tp.cuda.memory_reserved())
    assert reserved[1:] == reserved[1:2] * 3


def test_pinned_memory():
    x = tp.arange(1000.0)
    pinned = x.pin_memory("cuda")
    assert pinned.is_pinned()
    assert not x.is_pinned()
    assert pinned.pin_memory("cuda") is pinned
    there = pinned.to("cuda", non_blocking=True)
    assert tp.equal(there.cpu(), x)
    back, target = there.to("cpu", non_blocking=True), tp.empty(1000, pin_memory=True)
    target.copy_(there, non_blocking=True)
    tp.cuda.synchronize()
    assert back.is_pinned()
    assert tp.equal(back, x)
    assert tp.equal(target, x)


def test_copies_of_pinned_memory_do_not_wait():
    big = tp.randn(2 * BUSY, 2 * BUSY, device="cuda")
    pinned = tp.ones(1 << 20).pin_memory("cuda")
    big @ big
    tp.cuda.synchronize()
    for _ in range(20):
        big @ big
    there = pinned.to("cuda", non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    assert not tp.cuda.current_stream().query()
    tp.cuda.synchronize()
    assert tp.equal(back, pinned)


@pytest.mark.parametrize("dtype", [tp.float32, tp.float16, tp.bfloat16])
def test_linear_with_bias(dtype):
    for shape in ((33, 17), (2, 3, 40), (17,)):
        inner = shape[-1]
        x, weight, bias = (
            tp.randn(*shape).to(dtype),
            tp.randn(24, inner).to(dtype),
            tp.randn(24).to(dtype),
        )
        expected = tp.nn.functional.linear(x.float(), weight.float(), bias.float())
        found = tp.nn.functional.linear(x.to("cuda"), weight.to("cuda"), bias.to("cuda"))
        tp.testing.assert_close(found.cpu().float(), expected, rtol=2e-2, atol=2e-1)


# --- our own kernels ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16, tp.float32, tp.float64])
@pytest.mark.parametrize(
    "shapes", [((33, 17), (17, 9)), ((3, 33, 17), (17, 9)), ((3, 1, 8, 5), (2, 5, 7))]
)
def test_products_of_transposes(dtype, shapes):
    a, b = (tp.randn(*shape).to(dtype) for shape in shapes)
    expected = a @ b
    there, back = a.mT.contiguous().to("cuda"), b.mT.contiguous().to("cuda")
    for left in (a.to("cuda"), there.mT):
        for right in (b.to("cuda"), back.mT):
            tp.testing.assert_close((left @ right).cpu(), expected, rtol=2e-2, atol=1e-1)


@pytest.mark.parametrize("layout", [tp.contiguous_format, tp.channels_last])
@pytest.mark.parametrize("groups", [1, 4])
def test_convolution(layout, groups):
    x = tp.randn(2, 8, 15, 14).contiguous(memory_format=layout)
    weight, bias = tp.randn(12, 8 // groups, 3, 3), tp.randn(12)
    results = []
    for device in ("cpu", "cuda"):
        arguments = [t.to(device).detach().requires_grad_() for t in (x, weight, bias)]
        y = tp.nn.functional.conv2d(*arguments, stride=2, padding=1, groups=groups)
        y.square().sum().backward()
        results.append([y.detach().cpu(), *[t.grad.cpu() for t in arguments]])
    for one, other in zip(*results, strict=True):
        tp.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
@pytest.mark.parametrize("mask", ["none", "causal", "allowed", "added"])
def test_attention(dtype, mask):
    q, k, v = (tp.randn(2, 4, n, 64).to(dtype) for n in (128, 192, 192))
    options = {"is_causal": mask == "causal"}
    if mask == "allowed":
        options["attn_mask"] = tp.rand(128, 192) > 0.3
        options["attn_mask"][5] = False
    elif mask == "added":
        options["attn_mask"] = tp.randn(2, 1, 128, 192).to(dtype)
    results = []
    for device in ("cpu", "cuda"):
        inputs = [t.to(device).detach().requires_grad_() for t in (q, k, v)]
        given = {n: o.to(device) if isinstance(o, tp.Tensor) else o for n, o in options.items()}
        y = tp.nn.functional.scaled_dot_product_attention(*inputs, **given)
        y.float().square().sum().backward()
        results.append([y.detach().cpu(), *[t.grad.cpu() for t in inputs]])
    for one, other in zip(*results, strict=True):
        tp.testing.assert_close(one, other, rtol=5e-2, atol=5e-2)


def test_random_numbers_are_those_of_the_cpu():
    for shape in ((5,), (1000, 33)):
        tp.manual_seed(3)
        expected = tp.rand(*shape)
        tp.manual_seed(3)
        assert tp.equal(tp.rand(*shape, device="cuda").cpu(), expected)


def test_large_scatters():
    index = tp.randint(0, 100, (100_000,))
    values = tp.ones(100_000)
    counts = tp.zeros(100).scatter_add(0, index, values)
    found = tp.zeros(100, device="cuda").scatter_add(0, index.to("cuda"), values.to("cuda"))
    assert tp.equal(found.cpu(), counts)
    for dtype in (tp.uint8, tp.int16, tp.bfloat16):
        ones = tp.ones(100, dtype=dtype, device="cuda")
        few = tp.arange(100, device="cuda") % 7
        total = tp.zeros(7, dtype=dtype, device="cuda").index_add(0, few, ones)
        assert total.cpu().tolist() == np.bincount(np.arange(100) % 7).tolist()


@pytest.mark.skipif(
    REASON is not None or tp.cuda.device_count() < 2, reason="there is one GPU, or none"
)
def test_two_devices():
    x = tp.arange(10.0, device="cuda:0")
    y = x.to("cuda:1") * 2
    assert y.device.index == 1
    assert y.to("cuda:0").device.index == 0
    assert y.cpu().tolist() == (tp.arange(10.0) * 2).tolist()
    with tp.cuda.device(1):
        assert tp.zeros(1, device="cuda").device.index == 1
