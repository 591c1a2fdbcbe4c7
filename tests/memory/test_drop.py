"""Graphs of a million nodes go away without recursion, in linear time, and without the collector.

Quadratic work at these sizes would take hours, so what returns at all is linear.
"""

import gc
import sys
import threading
import weakref

import pytest

import tensorplug as tp
from tensorplug.autograd import Function

NODES = 1_000_000
FEW_BLOCKS = 2000  # what the interpreter itself keeps, see test_flat.py


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def chain(x, nodes):
    for _ in range(nodes):
        x = x.neg()
    return x


def blocks():
    return sys.getallocatedblocks()


@pytest.mark.slow
def test_a_million_nodes_without_backward():
    x = tp.ones(1, requires_grad=True)
    chain(x, 10)
    before = blocks()
    y = chain(x, NODES)
    assert blocks() - before > NODES  # else the count below would prove nothing
    del y
    assert blocks() - before < FEW_BLOCKS


@pytest.mark.slow
def test_a_million_nodes_with_backward():
    x = tp.ones(1, requires_grad=True)
    chain(x, 10).backward()
    x.grad = None
    before = blocks()
    y = chain(x, NODES)
    y.backward()
    assert x.grad.tolist() == [1.0]
    x.grad = None
    del y
    assert blocks() - before < FEW_BLOCKS


@pytest.mark.slow
def test_a_million_nodes_dropped_in_another_thread():
    """A thread's stack is smaller still than the main one's."""
    x = tp.ones(1, requires_grad=True)
    chain(x, 10)
    before = blocks()
    held = [chain(x, NODES)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    del thread
    assert not held
    assert blocks() - before < FEW_BLOCKS


@pytest.mark.slow
def test_a_chain_of_views():
    x = tp.ones(2, requires_grad=True)
    x.view(2).sum().backward()
    x.grad = None
    before = blocks()
    y = x
    for _ in range(NODES // 4):
        y = y.view(2)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    assert y._base is x
    del y
    # Python keeps 2000 freed tuples of each short length for itself.
    assert blocks() - before < 4 * FEW_BLOCKS


def test_writes_through_deep_views():
    x = tp.ones(3, requires_grad=True)
    base = x * 1
    view = base
    for _ in range(2000):
        view = view.view(3)
    part = view[1:]
    part.mul_(3)
    (base * tp.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 30.0, 300.0]
    assert view.tolist() == base.tolist() == [1.0, 3.0, 3.0]


@pytest.mark.slow
def test_a_chain_of_writes_in_place():
    x = tp.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(100_000):
        y.neg_()
    reference = weakref.ref(y.grad_fn)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y
    assert reference() is None


@pytest.mark.slow
def test_a_chain_of_functions():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 1
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    x = tp.ones(1, requires_grad=True)
    for run_backward in (True, False):
        y = x
        for _ in range(30_000):
            y = Same.apply(y)
        reference = weakref.ref(y.grad_fn)
        if run_backward:
            y.backward()
            assert x.grad.tolist() == [1.0]
        del y
        assert reference() is None


@pytest.mark.slow
def test_a_wide_graph():
    """Many nodes over one leaf, and many over one node."""
    x = tp.ones(1, requires_grad=True)
    middle = x * 2
    before = [x * 3 for _ in range(50_000)] + [middle * 3 for _ in range(50_000)]
    total = tp.cat(before).sum()
    total.backward()
    assert x.grad.tolist() == [50_000 * 3 + 50_000 * 6]
    reference = weakref.ref(total.grad_fn)
    del before, total
    assert reference() is None
