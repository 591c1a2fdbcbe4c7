"""Copies between host and device, over a stream that stands in for CUDA's and copies when told."""

import ctypes
import gc
import types
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest

from tensorplug.plugin import dtype_named
from tensorplug_cuda_cupy import copies, runtime, uses, waits
from tensorplug_cuda_cupy.runtime import CudaRuntime


class Block(bytearray):
    """Page-locked memory."""


class Stream:
    def __init__(self):
        self.queue = []
        self.waits = 0

    def synchronize(self):
        self.waits += 1
        self.run()

    def run(self):
        for step in self.queue:
            step()
        self.queue.clear()


class Pointer:
    """Where an array is on the device, as CuPy has it."""

    def __init__(self, stream, place):
        self.stream = stream
        self.place = place

    def copy_from_host_async(self, source, size):
        self.stream.queue.append(lambda: ctypes.memmove(self.place, source, size))

    def copy_to_host_async(self, target, size):
        self.stream.queue.append(lambda: ctypes.memmove(target, self.place, size))


class Event:
    def __init__(self, disable_timing):
        assert disable_timing
        self.done = False

    def record(self, stream):
        stream.queue.append(lambda: setattr(self, "done", True))


class Guard:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


@pytest.fixture
def stream(monkeypatch):
    made = Stream()

    class Array(np.ndarray):
        device = Guard()

        @property
        def data(self):
            return Pointer(made, self.ctypes.data)

    cuda = types.SimpleNamespace(
        alloc_pinned_memory=Block,
        Event=Event,
        get_current_stream=lambda: made,
        PinnedMemoryPointer=Block,
    )
    arrays = types.SimpleNamespace(
        cuda=cuda,
        empty=lambda shape, dtype: np.full(shape, 77, dtype).view(Array),
        full=lambda shape, value, dtype: np.full(shape, value, dtype).view(Array),
        ascontiguousarray=lambda a: np.ascontiguousarray(a).view(Array),
    )
    for module in (copies, runtime, uses):
        monkeypatch.setattr(module, "cp", arrays)
    return made


@pytest.fixture
def device(monkeypatch):
    made = CudaRuntime()
    monkeypatch.setattr(made, "_reason", None)
    monkeypatch.setattr(made, "_count", 1, raising=False)
    return made


SINGLE = dtype_named("float32")


def test_other_memory_is_staged(stream, device):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for send in (device.from_host, device.queue_from_host):
        y = send(x, SINGLE, 0)
        expected = x.copy()
        x += 1  # before the copy is made
        stream.run()
        assert y.tolist() == expected.tolist()
    assert stream.waits == 0


def test_pinned_memory_is_read_where_it_lies(stream, device):
    x = device.pin(np.arange(6, dtype=np.float32))
    assert device.is_pinned(x)
    assert device.pin(x) is x
    y = device.queue_from_host(x, SINGLE, 0)
    x += 1
    stream.run()
    assert y.tolist() == x.tolist() == [1, 2, 3, 4, 5, 6]
    staged = device.from_host(x, SINGLE, 0)
    x += 1
    stream.run()
    assert staged.tolist() == [1, 2, 3, 4, 5, 6]  # as the user did not ask for more
    assert stream.waits == 0


def test_pinned_memory_with_gaps_is_staged(stream, device):
    x = device.pin(np.arange(6, dtype=np.float32))
    y = device.queue_from_host(x[::2], SINGLE, 0)
    x += 1
    stream.run()
    assert y.tolist() == [0, 2, 4]


def test_pinned_memory_keeps_the_order_of_dimensions(stream, device):
    x = np.arange(24, dtype=ml_dtypes.bfloat16).reshape(2, 3, 4).transpose(1, 2, 0)
    pinned = device.pin(x)
    assert pinned.strides == x.strides
    assert pinned.tolist() == x.tolist()
    assert device.pin(np.float32(3)[...]).shape == ()
    assert device.pin(np.zeros((0, 2))).shape == (0, 2)


def test_memory_of_the_host_outlasts_the_copy(stream, device):
    x = device.pin(np.arange(4, dtype=np.float32))
    block = weakref.ref(x)
    y = device.queue_from_host(x, SINGLE, 0)
    del x
    gc.collect()
    assert block() is not None
    stream.run()
    assert y.tolist() == [0, 1, 2, 3]
    device.pin(np.zeros(1))  # lets go of what is done
    gc.collect()
    assert block() is None


def test_to_the_host(stream, device):
    x = device.from_host(np.arange(4, dtype=np.float32), SINGLE, 0)
    y = device.to_host(x)
    assert stream.waits == 1
    assert y.tolist() == [0, 1, 2, 3]
    late = device.queue_to_host(x)
    assert stream.waits == 1
    assert device.is_pinned(late)
    stream.run()
    assert late.tolist() == [0, 1, 2, 3]


def test_a_target_that_is_dropped_is_not_used_again_too_early(stream, device):
    x = device.from_host(np.arange(4, dtype=np.float32), SINGLE, 0)
    stream.run()
    late = weakref.ref(device.queue_to_host(x))
    gc.collect()
    assert late() is not None
    stream.run()
    device._memory.uses.release()
    gc.collect()
    assert late() is None


def test_into_memory_of_the_host(stream, device):
    x = device.from_host(np.arange(4, dtype=np.float32), SINGLE, 0)
    target = device.pin(np.zeros(4, np.float32))
    assert device.queue_to_host(x, target) is target
    assert target.tolist() == [0, 0, 0, 0]
    stream.run()
    assert target.tolist() == [0, 1, 2, 3]
    assert device.queue_to_host(x, np.zeros(4, np.float32)) is None
    assert device.queue_to_host(x, device.pin(np.zeros((4, 2), np.float32))[:, 0]) is None
    assert stream.waits == 0


def test_nothing_and_single_numbers(stream, device):
    assert device.from_host(np.zeros((0, 3), np.float32), SINGLE, 0).shape == (0, 3)
    assert device.to_host(device.from_host(np.zeros((0, 3), np.float32), SINGLE, 0)).shape == (0, 3)
    assert device.from_host(np.float32(2)[...], SINGLE, 0).tolist() == 2
    assert device.queue_from_host(np.float32(2)[...], SINGLE, 0).shape == ()


# --- what waits is said ---------------------------------------------------------------------------


@pytest.fixture
def modes(monkeypatch):
    module = types.SimpleNamespace(_declare_synchronize=lambda: None)
    monkeypatch.setattr(waits.importlib, "import_module", lambda name: module)
    yield module
    waits.set_mode(0)


def test_waiting_is_warned_of_or_refused(stream, device, modes):
    x = device.from_host(np.arange(4, dtype=np.float32), SINGLE, 0)
    waits.set_mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        device.to_host(x)
    assert stream.waits == 0
    device.queue_to_host(x)
    device.from_host(np.arange(4, dtype=np.float32), SINGLE, 0)
    waits.set_mode(1)
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        device.to_host(x)
    waits.set_mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device.to_host(x)


def test_what_cupy_waits_for_is_noted_too(modes):
    before = modes._declare_synchronize
    waits.set_mode("error")
    waits.set_mode(1)
    assert modes._declare_synchronize is waits.note
    assert waits.mode() == 1
    waits.set_mode(0)
    assert modes._declare_synchronize is before


@pytest.mark.parametrize(
    ("value", "error"),
    [("loud", RuntimeError), (3, RuntimeError), (True, TypeError), (None, TypeError)],
)
def test_modes_that_are_none(modes, value, error):
    with pytest.raises(error, match="set_sync_debug_mode"):
        waits.set_mode(value)
    assert waits.mode() == 0


def test_cupy_asks_before_it_waits():
    pytest.importorskip("cupy", reason="CuPy is not installed: make test-cuda-compile installs it")
    from cupy._core import syncdetect

    assert callable(syncdetect._declare_synchronize)
    before = syncdetect._declare_synchronize
    waits.set_mode("warn")
    try:
        assert syncdetect._declare_synchronize is waits.note
    finally:
        waits.set_mode("default")
    assert syncdetect._declare_synchronize is before
