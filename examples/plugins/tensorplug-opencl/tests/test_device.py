"""What the conformance suite does not ask of an OpenCL device."""

import threading

import pytest
from tensorplug_opencl import plugin
from tensorplug_opencl.arrays import DIMS

import tensorplug as tp

REASON = plugin.runtime.unavailable_reason()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def test_presence():
    assert tp.opencl.is_available()
    assert tp.opencl.device_count() >= 1
    assert tp.opencl.get_device_name() == plugin.runtime.device_name(0)
    assert tp.opencl.get_device_properties(0).compute_units >= 1


def test_memory_is_counted_and_given_back():
    tp.opencl.reset_peak_memory_stats()
    before = tp.opencl.memory_allocated()
    x = tp.empty(1000, dtype=tp.float32, device="opencl")
    assert tp.opencl.memory_allocated() - before == 4000
    assert tp.opencl.max_memory_allocated() >= before + 4000
    del x
    assert tp.opencl.memory_allocated() == before
    tp.opencl.empty_cache()
    assert tp.opencl.memory_reserved() == before


def test_too_much_memory_is_an_error_that_leaves_the_device_usable():
    with pytest.raises(RuntimeError, match="out of memory"):
        tp.empty(1 << 50, dtype=tp.uint8, device="opencl")
    assert (tp.ones(3, device="opencl") * 2).tolist() == [2.0, 2.0, 2.0]


def test_positions_that_are_not_there_do_not_end_the_process():
    x = tp.arange(3.0).to("opencl")
    for bad in (3, -1, 1 << 40):
        with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 3"):
            x.gather(0, tp.tensor([bad]).to("opencl"))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4096, 4097, 100_003])
def test_reductions_in_parts(size):
    x = tp.arange(size, dtype=tp.int64).to("opencl")
    assert x.sum().item() == size * (size - 1) // 2
    assert x.amax().item() == size - 1
    assert x.amin().item() == 0
    assert (x - size).abs().argmin().item() == size - 1


def test_more_dimensions_than_a_kernel_knows():
    shape = (2, 1) * (DIMS // 2) + (1,) * 10
    x = tp.ones(shape, device="opencl")
    assert (x + x).sum().item() == 2.0 ** (DIMS // 2 + 1)


def test_threads_share_the_device():
    x = tp.arange(1000.0).to("opencl")
    sums = []

    def work(factor):
        sums.extend(((x * factor).sum() / factor).item() for _ in range(20))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [499500.0] * 80


def test_training_follows_the_cpu():
    losses = {}
    for device in ("cpu", "opencl"):
        tp.manual_seed(0)
        model = tp.nn.Sequential(
            tp.nn.Conv2d(1, 4, 3), tp.nn.ReLU(), tp.nn.MaxPool2d(2), tp.nn.Flatten(),
            tp.nn.Linear(36, 10),
        )  # fmt: skip
        x, target = tp.randn(8, 1, 8, 8), tp.randint(0, 10, (8,))
        model.to(device)
        optimizer = tp.optim.Adam(model.parameters(), lr=1e-2)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = tp.nn.functional.cross_entropy(model(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["opencl"] == pytest.approx(losses["cpu"], rel=1e-4)
