"""The allocator's peaks and errors, over a pool that stands in for CuPy's."""

import types

import pytest

from tensorplug_cuda_cupy import memory
from tensorplug_cuda_cupy.memory import DeviceMemory, OutOfMemoryError


class Full(Exception):
    pass


class Pool:
    def __init__(self):
        self.used = self.total = self.limit = 0

    def malloc(self, size):
        if self.used + size > 1000:
            raise Full
        self.used += size
        self.total = max(self.total, self.used)
        return types.SimpleNamespace(device_id=0)

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.total

    def get_limit(self):
        return self.limit

    def set_limit(self, size):
        self.limit = size


@pytest.fixture
def pool(monkeypatch):
    made = Pool()
    cuda = types.SimpleNamespace(
        memory=types.SimpleNamespace(OutOfMemoryError=Full),
        runtime=types.SimpleNamespace(getDevice=lambda: 0, memGetInfo=lambda: (2048, 4096)),
    )
    monkeypatch.setattr(
        memory, "cp", types.SimpleNamespace(get_default_memory_pool=lambda: made, cuda=cuda)
    )
    return made


def test_peaks(pool):
    own = DeviceMemory()
    own._allocate(600)
    pool.used -= 500
    own._allocate(100)
    assert own.stats() == {
        "allocated": 200, "reserved": 600, "peak_allocated": 600, "peak_reserved": 600, "limit": 0,
    }  # fmt: skip
    own.reset_peaks()
    assert own.stats()["peak_allocated"] == 200
    own._allocate(50)
    assert own.stats()["peak_allocated"] == 250


def test_no_memory_left_is_told_with_the_figures(pool):
    own = DeviceMemory()
    own._allocate(600)
    own.set_fraction(0.5)
    with pytest.raises(OutOfMemoryError) as caught:
        own._allocate(3 << 20)
    text = str(caught.value)
    assert "tried to allocate 3.00 MiB" in text
    assert "has 4.00 KiB, of which 2.00 KiB are free" in text
    assert "take 600 bytes" in text
    assert "limit set is 2.00 KiB" in text
    assert isinstance(caught.value, RuntimeError)


def test_other_pools_tell_their_own_figures(pool):
    other = Pool()
    allocate = memory.allocator_of(other)
    allocate(600)
    with pytest.raises(OutOfMemoryError, match="tensors of this process take 600 bytes"):
        allocate(600)
    assert pool.used == 0


@pytest.mark.parametrize(
    ("value", "error"),
    [("0.5", TypeError), (True, TypeError), (1.5, ValueError), (-0.1, ValueError)],
)
def test_fractions_that_are_none(pool, value, error):
    with pytest.raises(error, match="set_per_process_memory_fraction"):
        DeviceMemory().set_fraction(value)
    assert pool.limit == 0


def test_no_memory_at_all_is_a_limit_too(pool):
    DeviceMemory().set_fraction(0)
    assert pool.limit == 1  # 0 would mean that there is none


def test_summary():
    text = memory.summary({"peak_allocated": 5 << 30, "allocated": 3}, "cuda:0, GPU")
    assert "cuda:0, GPU" in text
    assert "5.00 GiB" in text
    assert "3 bytes" in text
