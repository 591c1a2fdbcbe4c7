"""What the conformance suite does not ask: laziness, threads, memory, names, two devices in one model."""

import io
import threading

import pytest

import tensorplug as tp
from tensorplug import nn


def held(tensor):
    """Return what MLX holds for a tensor."""
    return tensor._array.store.array


def test_presence_and_names(mps):
    assert tp.backends.mps.is_available()
    assert tp.backends.mps.is_built()
    assert tp.mps.device_count() == 1
    assert tp.ones(2, device="mps").is_mps
    before = tp.mps.current_allocated_memory()
    x = tp.ones(1 << 16, device="mps")
    tp.mps.synchronize()
    assert tp.mps.current_allocated_memory() >= before + 4 * x.numel()
    assert tp.mps.driver_allocated_memory() >= tp.mps.current_allocated_memory()
    assert tp.mps.recommended_max_memory() > 0
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        tp.mps.set_per_process_memory_fraction(3)


def test_without_metal_the_name_says_so(mps):
    import mlx.core as mx

    assert ("for tests" in tp.mps.get_device_name()) == (not mx.metal.is_available())


def test_what_the_device_has_not_is_refused_with_the_way(mps):
    with pytest.raises(TypeError, match=r"has no dtype float64.*call \.float\(\) first"):
        tp.ones(2, dtype=tp.float64).to("mps")
    with pytest.raises(TypeError, match=r"complex128.*\.to\(tensorplug\.complex64\) first"):
        tp.ones(2, dtype=tp.complex128).to("mps")
    assert tp.ones(2, dtype=tp.float64).float().to("mps").tolist() == [1.0, 1.0]


def test_dimensions_beyond_32_bits_are_refused(mps):
    wide = tp.ones(1, device="mps").expand(1 << 33)
    with pytest.raises(RuntimeError, match="at most 2147483647 elements a dimension"):
        wide + 1


def test_what_nobody_asks_for_is_not_computed(mps, monkeypatch):
    from tensorplug_mps_mlx import _mlx

    calls = []
    for name in ("evaluate", "begin"):
        function = getattr(_mlx, name)
        monkeypatch.setattr(
            _mlx, name, lambda *a, name=name, f=function: (calls.append(name), f(*a))
        )
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to("mps")
    optimizer = tp.optim.AdamW(model.parameters())
    x, y = tp.ones(3, 4, device="mps"), tp.tensor([0, 1, 0], device="mps")
    tp.mps.synchronize()
    calls.clear()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    assert calls == []  # one graph
    optimizer.step()
    assert calls == ["begin"]
    assert loss.item() > 0
    assert calls == ["begin", "evaluate"]


def test_a_graph_that_nobody_reads_does_not_grow_for_ever(mps):
    from tensorplug_mps_mlx import runtime

    x = tp.zeros(2, device="mps")
    for _ in range(runtime.MOST_PENDING + 10):
        x += 1
    assert len(mps.runtime._pending) <= runtime.MOST_PENDING
    assert x.tolist() == [runtime.MOST_PENDING + 10.0] * 2


def test_synchronize_computes_what_is_held(mps, monkeypatch):
    from tensorplug_mps_mlx import _mlx

    x = tp.ones(4, device="mps") * 3
    begun = []
    monkeypatch.setattr(_mlx, "begin", lambda arrays: begun.extend(arrays))
    tp.mps.synchronize()
    assert any(array is held(x) for array in begun)


def test_events_take_the_time_of_the_work(mps):
    first, last = (tp.mps.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="have to be recorded first"):
        first.elapsed_time(last)
    first.record()
    x = tp.ones(64, 64, device="mps") @ tp.ones(64, 64, device="mps")
    assert mps.runtime._pending  # nothing is computed yet
    last.record()
    assert not mps.runtime._pending
    assert last.query()
    assert first.elapsed_time(last) > 0
    assert x[0, 0].item() == 64


def test_graphs_made_in_one_thread_are_read_in_others(mps):
    x = tp.ones(4, device="mps") * 2
    made = []

    def work():
        made.append(x * 3)
        made.append(tp.arange(4, device="mps"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tensor.sum().item() for tensor in made) == [6] * 4 + [24.0] * 4


@pytest.mark.parametrize("seed", range(30))
def test_writes_to_views(mps, seed):
    """Programs of views and writes, on the device and on the CPU."""
    generator = tp.Generator().manual_seed(seed)

    def draw(high):
        return int(tp.randint(high, (), generator=generator))

    there, here = (tp.arange(60.0).reshape(3, 4, 5).to(device) for device in ("mps", "cpu"))
    for number in range(4):
        step, first, dim = 1 + draw(2), draw(2), draw(3)
        kind = draw(5)
        for base in (there, here):
            view = base.transpose(dim, (dim + 1) % 3)
            view = (
                view[first::step],
                view[:, first : first + 2],
                view[first, ..., ::step],
                view.diagonal(0, dim, (dim + 1) % 3),
                view.reshape(-1)[first::step] if dim == 2 else view.unsqueeze(dim)[..., 1:],
            )[kind]
            view.add_(tp.arange(float(view.numel())).reshape(view.shape).to(base.device) + number)
    assert there.cpu().tolist() == here.tolist()


def test_a_model_on_two_devices(mps):
    tp.manual_seed(0)
    first, second = nn.Linear(4, 8), nn.Linear(8, 2)
    x = tp.randn(5, 4)
    second(first(x).relu()).square().sum().backward()
    expected = first.weight.grad.clone()
    first.weight.grad = None
    first = first.to("mps")
    second(first(x.to("mps")).relu().to("cpu")).square().sum().backward()
    assert first.weight.grad.device.type == "mps"
    tp.testing.assert_close(first.weight.grad.cpu(), expected)


def test_files_both_ways(mps):
    model = nn.Linear(3, 2)
    for source, target in (("cpu", "mps"), ("mps", "cpu")):
        file = io.BytesIO()
        tp.save(model.to(source).state_dict(), file)
        file.seek(0)
        loaded = tp.load(file, map_location=target)
        assert loaded["weight"].device.type == target
        file.seek(0)
        assert tp.load(file)["weight"].device.type == source
        assert loaded["weight"].tolist() == model.weight.tolist()


@pytest.mark.parametrize("dtype", [tp.float16, tp.bfloat16])
def test_autocast(mps, dtype):
    model = nn.Linear(3, 2).to("mps")
    with tp.autocast("mps", dtype=dtype):
        assert model(tp.ones(1, 3, device="mps")).dtype is dtype
    with tp.autocast("mps"):
        assert model(tp.ones(1, 3, device="mps")).dtype is tp.float16


def test_what_runs_on_the_host_is_counted(mps):
    def calls():
        count = tp.fallback_counts().get(("linalg_eigh", "mps"))
        return 0 if count is None else count.calls

    before = calls()
    tp.linalg.eigh(tp.eye(3, device="mps"))
    assert calls() == before + 1
    assert "computes on the CPU" in str(tp.explain("linalg_eigh", device="mps"))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.bfloat16])
def test_optimizers(mps, name, dtype):
    further = {"momentum": 0.9, "nesterov": True} if name == "SGD" else {"amsgrad": True}
    results = []
    for device in ("cpu", "mps"):
        weight = tp.linspace(-1, 1, 12).to(dtype).reshape(3, 4).to(device).requires_grad_()
        optimizer = getattr(tp.optim, name)([weight], lr=0.1, weight_decay=0.05, **further)
        for _ in range(3):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
        results.append(weight.detach().cpu().float())
    tolerance = 1e-5 if dtype is tp.float32 else 2e-2
    tp.testing.assert_close(results[1], results[0], rtol=tolerance, atol=tolerance)
