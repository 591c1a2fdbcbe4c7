"""Without the cyclic garbage collector, training stays flat and deep graphs are freed.

A reference cycle between tensors and the graph would hold every step's arrays until the collector
happens to run. So these tests switch it off and count what is alive.
"""

import gc
import sys

import pytest

import tensorplug as tp
from tensorplug import nn

STEPS = 10_000
NODES = 300_000

# A leak of one small object per step would be 9,000 blocks. What the interpreter itself keeps
# (specialised code, grown dictionaries, messages to the test runner) stays far below this.
FEW_BLOCKS = 2000


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def blocks():
    """Memory blocks that Python's allocator has given out: every object has one at least."""
    return sys.getallocatedblocks()


def live_tensors():
    return sum(issubclass(type(thing), tp.Tensor) for thing in gc.get_objects())


def peak_megabytes():
    """The most memory this process ever held; None where the system does not tell."""
    resource = pytest.importorskip("resource")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def training(optimizer_type, **options):
    """Yield after each training step of a tiny network."""
    tp.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = optimizer_type(model.parameters(), **options)
    inputs, labels = tp.randn(5, 4), tp.arange(5) % 3
    while True:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer_type", "options"),
    [(tp.optim.SGD, {"lr": 0.01, "momentum": 0.9}), (tp.optim.AdamW, {"lr": 0.001})],
    ids=["SGD", "AdamW"],
)
def test_training_stays_flat(optimizer_type, options):
    steps = training(optimizer_type, **options)
    for _ in range(STEPS // 10):  # until tables, caches and memory pools are filled
        first = next(steps)
    tensors_before, blocks_before, peak_before = live_tensors(), blocks(), peak_megabytes()
    assert tensors_before > 0
    for _ in range(STEPS - STEPS // 10):
        last = next(steps)
    assert last < first
    assert live_tensors() <= tensors_before  # what tests before this one left may go meanwhile
    assert blocks() - blocks_before < FEW_BLOCKS
    # Memory outside of Python's allocator: 1 KB per step would be 9 MB.
    assert peak_megabytes() - peak_before < 4


def chain(x, nodes):
    """A graph so deep that anything recursive overflows the stack."""
    factor = tp.full((2,), 1.0)
    for _ in range(nodes // 2):
        x = x * factor + factor
    return x


@pytest.mark.slow
def test_deep_graph_runs_backward_and_is_freed():
    x = tp.zeros(2, requires_grad=True)
    chain(x, 100).sum().backward()  # fills tables and caches
    x.grad = None
    tensors_before, blocks_before = live_tensors(), blocks()

    y = chain(x, NODES)
    assert y[0].item() == NODES // 2
    assert blocks() - blocks_before > NODES  # else the count below would prove nothing
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    # The nodes may stand as long as `y` does, but what they saved is gone.
    assert live_tensors() <= tensors_before + 1
    del y
    assert live_tensors() <= tensors_before  # what tests before this one left may go meanwhile
    assert blocks() - blocks_before < FEW_BLOCKS


@pytest.mark.slow
def test_deep_graph_is_freed_without_backward():
    x = tp.zeros(2, requires_grad=True)
    chain(x, 100)
    blocks_before = blocks()
    y = chain(x, NODES)
    assert blocks() - blocks_before > NODES
    del y
    assert blocks() - blocks_before < FEW_BLOCKS
