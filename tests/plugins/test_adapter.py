"""An array library as a device: its stores, its kernels, and the 20 lines that it takes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorplug as tp
from tensorplug.core.tensor.shapes import contiguous_strides
from tensorplug.plugin import (
    ArrayApiRuntime,
    DeviceNotAvailableError,
    array_api_backend,
    dtype_named,
    host_kernels,
)
from tensorplug.plugin.standard import stores
from tensorplug.plugin.standard.kernels import REQUIRED
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

FLOAT64 = dtype_named("float64")
DTYPES = (dtype_named("float32"), dtype_named("int64"))
# Every op in one dtype or the other.
CASES = [
    pytest.param(record, dtype, id=f"{record.op}-{dtype.name}")
    for number, record in enumerate(all_records())
    for dtype in DTYPES[number % 2 :][:1]
    if dtype in record.dtypes
]


@pytest.fixture(scope="module", autouse=True)
def adapted():
    """Register NumPy as a device of its own, as if it had nothing but the standard's functions."""
    plugin = array_api_backend(np, device_type="adapted")

    @plugin.kernel("square")
    def square(input):
        calls.append(input.shape)
        return input * input

    calls = []
    tp.plugins.register(plugin)
    yield calls
    tp.plugins.unregister("adapted")


@pytest.mark.slow
@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_forward(record, dtype):
    if "forward" in record.skips:
        pytest.skip(record.skips["forward"])
    assert cases.check_forward(record, "adapted", dtype) > 0


def test_an_own_kernel_wins(adapted):
    adapted.clear()
    assert tp.tensor([3.0]).to("adapted").square().tolist() == [9.0]
    assert adapted == [(1,)]
    assert "priority 1" in str(tp.explain("square", device="adapted"))


def test_views_share_memory():
    x = tp.arange(12.0).reshape(3, 4).to("adapted")
    x.t()[1:3] = -1.0
    assert x.tolist() == [[0, -1, -1, 3], [4, -1, -1, 7], [8, -1, -1, 11]]
    x.diagonal().mul_(10.0)
    assert x.diagonal().tolist() == [0.0, -10.0, -10.0]


def test_a_clone_does_not():
    x = tp.ones(3).to("adapted")
    y = x.clone()
    x += 1
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_memory_as_another_dtype():
    x = tp.tensor([1.0, -2.0]).to("adapted")
    bits = x.view(tp.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000]
    bits[0] = 0x40000000
    assert x.tolist() == [2.0, -2.0]


def test_a_network_trains():
    tp.manual_seed(0)
    model = tp.nn.Sequential(tp.nn.Linear(4, 8), tp.nn.Tanh(), tp.nn.Linear(8, 1))
    twin = tp.nn.Sequential(tp.nn.Linear(4, 8), tp.nn.Tanh(), tp.nn.Linear(8, 1))
    twin.load_state_dict(model.state_dict())
    twin.to("adapted")
    x = tp.randn(16, 4)
    losses = []
    for net, device in ((model, "cpu"), (twin, "adapted")):
        optimizer = tp.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            loss = (net(x.to(device)) - 1).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def part_of_numpy(*names):
    """A library that has some of NumPy's functions and dtypes, and nothing else."""
    return SimpleNamespace(__name__="pebble", **{name: getattr(np, name) for name in names})


def test_a_library_with_the_least_that_is_needed(registry):
    least = part_of_numpy(*REQUIRED, "bool", "int64", "float32")
    registry.register(array_api_backend(least, device_type="pebble"))
    x = tp.arange(6.0).to("pebble").reshape(2, 3)
    assert (x.t() @ x).sum(0).argmax().item() == 2  # on the host
    assert x.exp()[0, 0].item() == 1.0
    x[:, 1] = -1.0
    assert x.tolist() == [[0.0, -1.0, 2.0], [3.0, -1.0, 5.0]]
    assert "computes on the CPU" in str(tp.explain("exp", device="pebble"))
    assert "computes on the CPU" not in str(tp.explain("cat", device="pebble")).partition("\n")[0]


def test_a_library_that_lacks_what_is_needed():
    with pytest.raises(
        TypeError, match="pebble lacks concat, permute_dims, which the adapter needs"
    ):
        array_api_backend(
            part_of_numpy(*(set(REQUIRED) - {"concat", "permute_dims"})), device_type="pebble"
        )
    with pytest.raises(TypeError, match="pebble lacks the dtypes int64, float32"):
        array_api_backend(part_of_numpy(*REQUIRED, "bool"), device_type="pebble")


def test_an_absent_library():
    plugin = array_api_backend(np, device_type="gone", unavailable_reason=lambda: "no card")
    tp.plugins.register(plugin)
    try:
        assert not tp.gone.is_available()
        with pytest.raises(DeviceNotAvailableError, match="no card"):
            tp.ones(1).to("gone")
    finally:
        tp.plugins.unregister("gone")


def test_host_kernels_refuse_views():
    with pytest.raises(ValueError, match="permute makes a view"):
        host_kernels(array_api_backend(np, device_type="other").runtime, ["permute"])


# --- stores ---------------------------------------------------------------------------------------


@st.composite
def layouts(draw):
    """Draw shape, strides and offset within a store, and the store's size."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    strides = tuple(draw(st.integers(0, 13)) for _ in shape)
    offset = draw(st.integers(0, 5))
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return shape, strides, offset, offset + max(last, 0) + 1 + draw(st.integers(0, 9))


def view_of(flat, shape, strides, offset):
    steps = tuple(stride * flat.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps)


@given(layouts())
def test_reading_any_layout(layout):
    shape, strides, offset, size = layout
    flat = np.arange(float(size))
    store = stores.Store(flat, FLOAT64)
    found = stores.read(np, stores.StoredArray(store, shape, strides, offset, FLOAT64))
    np.testing.assert_array_equal(found, view_of(flat, shape, strides, offset), strict=True)


@given(layouts())
def test_writing_any_layout(layout):
    shape, strides, offset, size = layout
    flat = np.arange(float(size))
    expected = flat.copy()
    target = view_of(expected, shape, strides, offset)
    # Places that are written twice get the same number, so that the order does not matter.
    source = view_of(-1 - flat, shape, strides, offset).copy()
    target[...] = source
    store = stores.Store(flat, FLOAT64)
    stores.write(np, stores.StoredArray(store, shape, strides, offset, FLOAT64), source)
    np.testing.assert_array_equal(store.array.reshape(-1), expected)
    np.testing.assert_array_equal(flat, np.arange(float(size)), "an array was written to")


def test_a_layout_beyond_the_store_is_refused():
    array = stores.stored(np.zeros(6), FLOAT64)
    wrong = stores.Layout((3, 3), contiguous_strides((3, 3)), 0, FLOAT64)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 48"):
        stores.relaid(array, wrong)


def test_what_a_library_lacks_is_said_with_the_remedy(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    for name in ("torch", "dask.array"):
        with pytest.raises(
            TypeError, match=f"{name} does not follow .*`pip install array-api-compat`"
        ):
            array_api_backend(SimpleNamespace(__name__=name), device_type="bare")
    without_x64 = SimpleNamespace(
        **{name: getattr(np, name) for name in REQUIRED},
        **{name: getattr(np, name) for name in ("bool", "int32", "float32")},
        __name__="jax.numpy",
    )
    with pytest.raises(TypeError, match=r"lacks the dtypes int64; run jax.config.update\("):
        array_api_backend(without_x64, device_type="bare")


def test_array_api_compat_is_used_where_a_library_needs_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "array_api_compat", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", np)
    plugin = array_api_backend(SimpleNamespace(__name__="torch"), device_type="bare")
    assert plugin.runtime.xp is np


@pytest.fixture
def ledger():
    """Register NumPy with fewer dtypes, a runtime that counts writes, and a kernel that writes."""

    class CountingRuntime(ArrayApiRuntime):
        written = 0

        def write(self, target, source):
            self.written += 1
            super().write(target, source)

    kept = [dtype_named(name) for name in ("bool", "int64", "float32")]
    plugin = array_api_backend(np, device_type="ledger", dtypes=kept, runtime=CountingRuntime)

    @plugin.kernel("optim.sgd_step", writes=True)
    def sgd_step(params, grads, momentum_buffers, lr, momentum, dampening, *switches):
        for param, grad in zip(params, grads, strict=True):
            read = plugin.runtime.read
            plugin.runtime.write(param, read(param) - np.float32(2 * lr) * read(grad))

    tp.plugins.register(plugin)
    yield plugin.runtime
    tp.plugins.unregister("ledger")


def test_dtypes_that_are_left_out(ledger):
    assert ledger.capabilities == {"views", "in_place"}
    for left_out in (tp.float64, tp.float16, tp.int32):
        with pytest.raises(TypeError, match=f"has no dtype {left_out}".replace("tensorplug.", "")):
            tp.ones(2, dtype=left_out).to("ledger")


def test_elements_are_written_in_place_once(ledger):
    x = tp.ones(2, 3).to("ledger")
    other = tp.full((2,), 2.0).to("ledger")
    ledger.written = 0
    x[:, 1].add_(other)
    x.mul_(2)
    assert ledger.written == 2
    assert x.tolist() == [[2.0, 6.0, 2.0]] * 2


def test_a_kernel_that_writes(ledger):
    weight = tp.ones(2).to("ledger").requires_grad_()
    weight.sum().backward()
    tp.optim.SGD([weight], lr=0.25).step()
    assert weight.tolist() == [0.5, 0.5]  # twice the rate: it was ours
