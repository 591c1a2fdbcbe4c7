"""The allocator: its figures, limits and errors; pools; memory that several streams use."""

import contextlib

import pytest
from on_device import BUSY, needs_device, needs_host

import tensorplug as tp
from tensorplug_cuda_cupy.runtime import memory, pools

pytestmark = needs_device
MIB = 1 << 20


def empty(size):
    return tp.empty(size, dtype=tp.uint8, device="cuda")


@contextlib.contextmanager
def limited(fraction):
    """Let this process take a part of the device's memory."""
    tp.cuda.set_per_process_memory_fraction(fraction)
    try:
        yield
    finally:
        tp.cuda.set_per_process_memory_fraction(1.0)
        tp.cuda.empty_cache()


def test_memory_is_counted_and_given_back():
    tp.cuda.synchronize()
    tp.cuda.empty_cache()
    tp.cuda.reset_peak_memory_stats()
    before, reserved = tp.cuda.memory_allocated(), tp.cuda.memory_reserved()
    x = empty(4 * MIB)
    assert tp.cuda.memory_allocated() - before == 4 * MIB <= tp.cuda.device_memory_used()
    del x
    assert tp.cuda.memory_allocated() == before
    assert tp.cuda.memory_reserved() == tp.cuda.max_memory_reserved() == reserved + 4 * MIB
    x = empty(MIB)
    assert tp.cuda.max_memory_allocated() == before + 4 * MIB
    tp.cuda.reset_peak_memory_stats()
    assert tp.cuda.max_memory_allocated() == before + MIB
    y = empty(2 * MIB)
    del x, y
    assert tp.cuda.max_memory_allocated() == before + 3 * MIB
    tp.cuda.empty_cache()
    assert tp.cuda.memory_reserved() == reserved
    free, total = tp.cuda.mem_get_info()
    assert 0 < free <= total


def test_peaks_are_kept_apart():
    tp.cuda.synchronize()
    tp.cuda.empty_cache()
    before, reserved = tp.cuda.memory_allocated(), tp.cuda.memory_reserved()
    tp.cuda.reset_peak_memory_stats()
    pair = [empty(4 * MIB) for _ in range(2)]
    del pair
    more = empty(5 * MIB)  # which neither of both blocks holds
    assert tp.cuda.memory_allocated() == before + more.numel()
    assert tp.cuda.max_memory_allocated() == before + 8 * MIB
    assert tp.cuda.max_memory_reserved() == reserved + 13 * MIB


def test_summary():
    assert "peak allocated" in tp.cuda.memory_summary()
    text = memory.summary({"peak_allocated": 5 << 30, "allocated": 3}, "cuda:0, GPU")
    for part in ("cuda:0, GPU", "5.00 GiB", "3 bytes"):
        assert part in text


def test_too_much_memory_is_an_error_that_leaves_the_device_usable():
    x = empty(4 * MIB)
    with limited(0.5):
        assert tp.cuda.get_per_process_memory_fraction() == 0.5
        with pytest.raises(tp.cuda.OutOfMemoryError) as caught:
            empty(1 << 45)
    assert isinstance(caught.value, RuntimeError)
    total = memory._short(tp.cuda.mem_get_info()[1])
    limit = memory._short(tp.cuda.mem_get_info()[1] // 2)
    text = str(caught.value)
    for part in (
        "CUDA out of memory: tried to allocate 32768.00 GiB", f"has {total}, of which", "are free",
        f"the limit set is {limit}",
    ):  # fmt: skip
        assert part in text
    assert x.numel() == 4 * MIB
    assert (tp.ones(3, device="cuda") * 2).tolist() == [2.0, 2.0, 2.0]


def test_no_memory_at_all_is_a_limit_too():
    tp.cuda.empty_cache()
    with limited(0), pytest.raises(tp.cuda.OutOfMemoryError, match="the limit set is 1 bytes"):
        empty(64 * MIB)


@pytest.mark.parametrize(
    ("value", "error"),
    [("0.5", TypeError), (True, TypeError), (1.5, ValueError), (-0.1, ValueError)],
)
def test_fractions_that_are_none(value, error):
    before = tp.cuda.get_per_process_memory_fraction()
    with pytest.raises(error, match="set_per_process_memory_fraction"):
        tp.cuda.set_per_process_memory_fraction(value)
    assert tp.cuda.get_per_process_memory_fraction() == before


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


# --- pools --------------------------------------------------------------------------------------


def test_memory_comes_from_a_pool():
    pool, before = tp.cuda.MemPool(), tp.cuda.memory_allocated()
    for device in (None, "cuda:0"):
        with tp.cuda.use_mem_pool(pool, device):
            x = empty(5 * MIB)
        assert pool.id.used_bytes() == 5 * MIB
        assert tp.cuda.memory_allocated() == before
        del x
        assert pool.id.used_bytes() == 0
    assert pool.id.total_bytes() == 5 * MIB
    y = empty(5 * MIB)
    assert tp.cuda.memory_allocated() == before + 5 * MIB
    assert y.numel() == 5 * MIB


def test_pools_tell_their_own_figures():
    pool = tp.cuda.MemPool()
    pool.id.set_limit(size=8 * MIB)
    with tp.cuda.use_mem_pool(pool):
        x = empty(6 * MIB)
        with pytest.raises(
            tp.cuda.OutOfMemoryError, match=r"take 6.00 MiB, and .* limit set is 8.00 MiB"
        ):
            empty(6 * MIB)
    assert x.numel() == 6 * MIB


def test_a_pool_takes_an_allocator():
    import cupy

    asked = []

    def allocate(size):
        asked.append(size)
        return cupy.cuda.memory._malloc(size)

    pool = pools.MemPool(allocate)
    with pools.use_mem_pool(pool):
        empty(3 * MIB)
    assert asked == [3 * MIB]


def test_pools_that_are_none():
    with pytest.raises(RuntimeError, match="not supported"):
        pools.MemPool(no_split=True)
    said = r"expects a tp\.cuda\.MemPool, got int"
    with pytest.raises(TypeError, match=said), pools.use_mem_pool(3):
        pass


# --- other streams ------------------------------------------------------------------------------


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


@needs_host
def test_memory_is_held_until_each_stream_has_come_past():
    size = 7 * MIB
    one, other = tp.cuda.Stream(), tp.cuda.Stream()
    tp.cuda.synchronize()
    tp.cuda.empty_cache()
    x = empty(size)
    place, view = x.data_ptr(), x[:10]
    for stream in (one, other, one):
        with tp.cuda.stream(stream):
            small = tp.zeros(1, device="cuda")
            for _ in range(100):
                small += 1
        x.record_stream(stream)
    taken = []

    def is_free():
        taken.append(empty(size))
        return taken[-1].data_ptr() == place

    del x
    assert not is_free()  # the view keeps it
    view.record_stream(other)
    del view
    assert not is_free()
    one.synchronize()
    assert not is_free()
    other.synchronize()
    assert is_free()
