"""Copies with ``non_blocking=True``, over a device that carries them out when it is synchronized."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import DeviceRuntime, KernelTable, dtype_named, hookimpl


class LateArray:
    def __init__(self, data):
        self.data = data

    @property
    def shape(self):
        return self.data.shape


class LateRuntime(DeviceRuntime):
    """Queues its copies, as a GPU does."""

    type = "late"
    array_type = LateArray
    capabilities = frozenset({"float64", "in_place"})

    def __init__(self):
        self.queue = []
        self.locked = []
        self.copies = []

    def dtype(self, array):
        return dtype_named(array.data.dtype.name)

    def empty(self, shape, dtype, index):
        return LateArray(np.zeros(shape, dtype.name))

    def scalar(self, value, dtype, index):
        return LateArray(np.asarray(value, dtype.name))

    def copy_into(self, target, source):
        target.data[...] = source.data

    def from_host(self, array, dtype, index):
        self.copies.append("from")
        return LateArray(np.array(array, dtype.name))

    def to_host(self, array):
        self.synchronize(0)
        self.copies.append("to")
        return array.data.copy()

    def queue_from_host(self, array, dtype, index):
        if not self.is_pinned(array):
            return None
        made = LateArray(np.full(array.shape, -1, dtype.name))
        self.queue.append((made.data, array))
        self.copies.append("queued from")
        return made

    def queue_to_host(self, array, target=None):
        if target is None:
            target = self.pin(np.full(array.shape, -1, array.data.dtype))
        elif not self.is_pinned(target):
            return None
        self.queue.append((target, array.data))
        self.copies.append("queued to")
        return target

    def synchronize(self, index):
        for target, source in self.queue:
            target[...] = source
        self.queue.clear()

    def pin(self, array):
        self.locked.append(array.copy())
        return self.locked[-1]

    def is_pinned(self, array):
        return any(np.shares_memory(array, known) for known in self.locked)


@pytest.fixture
def late():
    runtime = LateRuntime()

    class Plugin:
        name = "late"

        @hookimpl
        def tensorplug_devices(self):
            return [runtime]

        @hookimpl
        def tensorplug_kernels(self):
            table = KernelTable("late")
            table.add("clone", lambda input: LateArray(input.data.copy()))
            table.add("cast", lambda input, dtype: LateArray(input.data.astype(dtype.name)))

            def copy(input, src):
                runtime.synchronize(0)  # a kernel comes after the copies that were queued before it
                return LateArray(src.data + 0 * input.data)

            table.add("copy", copy)

            def mul(input, other):
                runtime.synchronize(0)
                return LateArray(input.data * other.data)

            table.add("mul", mul)
            return table

    tp.plugins.register(Plugin())
    yield runtime
    tp.plugins.unregister("late")


def test_from_pinned_memory(late):
    x = tp.arange(6.0).pin_memory("late")
    assert x.is_pinned("late")
    for move in (
        lambda: x.to("late", non_blocking=True),
        lambda: x.to("late", None, True),
        lambda: x.late(non_blocking=True),
        lambda: x.to("late", non_blocking=True, memory_format=tp.contiguous_format),
        lambda: tp.empty(6, device="late").copy_(x, non_blocking=True),
    ):
        late.copies.clear()
        y = move()
        assert late.copies == ["queued from"]
        assert y.cpu().tolist() == x.tolist()


def test_other_memory_is_copied_at_once(late):
    x = tp.arange(6.0)
    y = x.to("late", non_blocking=True)
    assert late.copies == ["from"]
    x.zero_()
    assert y.cpu().tolist() == list(range(6))
    late.copies.clear()
    x.pin_memory("late").to("late")
    assert late.copies == ["from"]


def test_to_the_host(late):
    x = tp.arange(6.0, device="cpu").to("late")
    late.copies.clear()
    y = x.to("cpu", non_blocking=True)
    assert late.copies == ["queued to"]
    assert y.is_pinned("late")
    assert y.tolist() == [-1.0] * 6
    late.synchronize(0)
    assert y.tolist() == list(range(6))


def test_into_memory_of_the_host(late):
    x = tp.arange(6.0).to("late")
    y = tp.zeros(6).pin_memory("late")
    version = y._version
    late.copies.clear()
    with pytest.raises(TypeError, match="argument 'blocking'"):
        y.copy_(x, blocking=False)
    assert y.copy_(x, non_blocking=True) is y
    assert late.copies == ["queued to"]
    assert y.tolist() == [0.0] * 6
    assert y._version == version + 1
    late.synchronize(0)
    assert y.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("target", "recorded"),
    [
        (lambda: tp.zeros(6), False),
        (lambda: tp.zeros(2, 6).pin_memory("late"), False),
        (lambda: tp.zeros(6, dtype=tp.float64).pin_memory("late"), False),
        (lambda: tp.zeros(6).pin_memory("late"), True),
    ],
    ids=["not pinned", "broadcast", "converted", "recorded"],
)
def test_what_the_host_reads_is_waited_for(late, target, recorded):
    x = tp.arange(6.0).to("late").requires_grad_(recorded)
    y = target()
    late.copies.clear()
    y.copy_(x, non_blocking=True)
    assert late.copies == ["to"]
    assert y.requires_grad == recorded
    assert (y == tp.arange(6.0)).all()


def test_gradients_are_waited_for(late):
    x = tp.arange(3.0, requires_grad=True)
    y = x.to("late", non_blocking=True)
    late.copies.clear()
    y.backward(tp.full((3,), 2.0).to("late"))
    assert late.copies == ["from", "to"]
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_pinned_memory_is_made(late, monkeypatch):
    monkeypatch.setattr("tensorplug.core.device.pinned_memory._offering", lambda device: [late])
    for tensor in (
        tp.empty(2, 3, pin_memory=True),
        tp.zeros(2, pin_memory=True, requires_grad=True),
        tp.ones(2, pin_memory=True),
        tp.full((2,), 3.0, pin_memory=True),
    ):
        assert tensor.is_pinned()
    assert tp.zeros(2, pin_memory=True, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="cannot pin"):
        tp.zeros(2, device="meta", pin_memory=True)


def test_what_is_saved_on_the_cpu_comes_from_pinned_memory(late):
    x, factor = tp.ones(3).to("late").requires_grad_(), tp.arange(3.0).to("late")
    with tp.autograd.graph.save_on_cpu(pin_memory=True, device_type="late"):
        y = x * factor
    late.copies.clear()
    y.backward(tp.ones(3).to("late"))
    assert "queued from" in late.copies
    assert x.grad.cpu().tolist() == [0.0, 1.0, 2.0]
