"""Copies between host and device: nobody waits, and what is page-locked is read and written where it lies."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from on_device import BUSY, needs_device, needs_host, waits

import tensorplug as tp
from tensorplug_cuda_cupy import plugin

pytestmark = needs_device
device = plugin.runtime


def numbers(size=6):
    return np.arange(size, dtype=np.float32)


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


def test_pinned_memory_keeps_the_order_of_dimensions():
    x = np.arange(24, dtype=ml_dtypes.bfloat16).reshape(2, 3, 4).transpose(1, 2, 0)
    pinned = device.pin(x)
    assert pinned.strides == x.strides
    assert pinned.tolist() == x.tolist()
    assert device.pin(np.float32(3)[...]).shape == ()
    assert device.pin(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_other_memory_is_staged(non_blocking):
    x = numbers().reshape(2, 3)
    y = tp.from_numpy(x).to("cuda", non_blocking=non_blocking)
    x += 1  # maybe before the copy is made
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]


@needs_host
def test_pinned_memory_is_read_where_it_lies():
    before, found = waits(), []
    for send in (
        device.queue_from_host,
        device.from_host,
        lambda x, *rest: device.queue_from_host(x[::2], *rest),
    ):
        x = device.pin(numbers())
        found.append(send(x, tp.float32, 0))
        x += 1
    assert waits() == before
    late, staged, gaps = found
    assert late.tolist() == [1, 2, 3, 4, 5, 6]
    assert staged.tolist() == [0, 1, 2, 3, 4, 5]  # as the user did not ask for more
    assert gaps.tolist() == [0, 2, 4]


@needs_host
def test_pinned_memory_is_written_where_it_lies():
    x, target = device.from_host(numbers(4), tp.float32, 0), device.pin(np.zeros(4, np.float32))
    before = waits()
    late = device.queue_to_host(x)
    assert device.is_pinned(late)
    assert device.queue_to_host(x, target) is target
    assert device.queue_to_host(x, np.zeros(4, np.float32)) is None
    assert device.queue_to_host(x, device.pin(np.zeros((4, 2), np.float32))[:, 0]) is None
    assert waits() == before
    assert target.tolist() == [0, 0, 0, 0]
    assert device.to_host(x).tolist() == [0, 1, 2, 3]
    assert waits() > before
    assert target.tolist() == late.tolist() == [0, 1, 2, 3]


@needs_host
@pytest.mark.parametrize("to_host", [False, True])
def test_memory_of_the_host_outlasts_the_copy(to_host):
    tp.cuda.empty_cache()
    if to_host:
        there = device.from_host(numbers(), tp.float32, 0)
        memory = device.queue_to_host(there)
    else:
        memory = device.pin(numbers())
        there = device.queue_from_host(memory, tp.float32, 0)
    block = weakref.ref(memory)
    del memory
    gc.collect()
    assert block() is not None
    assert there.tolist() == numbers().tolist()
    device.pin(np.zeros(1))  # lets go of what is done
    gc.collect()
    assert block() is None


def test_nothing_and_single_numbers():
    for shape in ((0, 3), ()):
        x = np.full(shape, 2, np.float32)
        for send in (device.from_host, device.queue_from_host):
            there = send(x, tp.float32, 0)
            assert there.shape == shape
            back = device.to_host(there)
            assert (back.shape, back.tolist()) == (shape, x.tolist())


def test_arrays_of_cupy():
    import cupy

    array = cupy.arange(6.0).reshape(2, 3)
    shown, copied = tp.as_tensor(array), tp.tensor(array)
    array[0, 0] = 7
    assert shown.device.type == copied.device.type == "cuda"
    assert shown.tolist() == [[7, 1, 2], [3, 4, 5]]
    assert copied.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tp.as_tensor(array, device="cpu").device.type == "cpu"
    assert tp.tensor(array, dtype=tp.int32).dtype == tp.int32
    assert cupy.from_dlpack(shown).data.ptr == array.data.ptr
