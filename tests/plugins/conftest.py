"""A small device to register in a process, and care that nothing of it stays behind."""

import types

import numpy as np
import pytest

import tensorplug
from tensorplug.core import plugins
from tensorplug.core.dispatch import fallback, keys
from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.core.plugins.entry_points import Found
from tensorplug.plugin import DeviceRuntime, Kernel, dtype_named, hookimpl

FLOAT32 = dtype_named("float32")
FLOAT64 = dtype_named("float64")
INT64 = dtype_named("int64")

#: A priority above those of every backend that may be installed.
TOP = 1_000


class ToyArray:
    """An array of the toy device: not NumPy's class, though NumPy does the work."""

    def __init__(self, data):
        self.data = np.asarray(data)

    @property
    def shape(self):
        return self.data.shape


class ToyRuntime(DeviceRuntime):
    type = "toy"
    array_type = ToyArray
    capabilities = frozenset({"float64", "in_place"})
    reason = None

    def unavailable_reason(self):
        return self.reason

    def dtype(self, array):
        return dtype_named(array.data.dtype.name)

    def empty(self, shape, dtype, index):
        return ToyArray(np.zeros(shape, dtype.name))

    def scalar(self, value, dtype, index):
        return ToyArray(np.asarray(value, dtype.name))

    def copy_into(self, target, source):
        target.data[...] = source.data

    def from_host(self, array, dtype, index):
        return ToyArray(np.array(array, dtype.name))

    def to_host(self, array):
        return array.data


def toy_fill_new(shape, value, dtype):
    return ToyArray(np.full(shape, value, dtype.name))


def toy_cast(input, dtype):
    return ToyArray(input.data.astype(dtype.name))


def toy_add(input, other):
    return ToyArray(input.data + other.data)


def toy_mul(input, other):
    return ToyArray(input.data * other.data)


def toy_view(input, shape):
    return ToyArray(input.data.reshape(shape))


def toy_expand(input, shape):
    return ToyArray(np.broadcast_to(input.data, shape))


class Plugin:
    """A plugin of whatever a test hands it."""

    def __init__(self, name, devices=(), ops=(), kernels=(), derivatives=(), layers=()):
        self.name = name
        self.parts = devices, ops, kernels, derivatives, layers

    @hookimpl
    def tensorplug_devices(self):
        return self.parts[0]

    @hookimpl
    def tensorplug_ops(self):
        return self.parts[1]

    @hookimpl
    def tensorplug_kernels(self):
        return self.parts[2]

    @hookimpl
    def tensorplug_derivatives(self):
        return self.parts[3]

    @hookimpl
    def tensorplug_layers(self):
        return self.parts[4]


def toy_plugin(name="toy_plugin", kernels=None):
    if kernels is None:
        kernels = [
            Kernel("fill_new", "toy", toy_fill_new),
            Kernel("cast", "toy", toy_cast),
            Kernel("add", "toy", toy_add),
            Kernel("view", "toy", toy_view),
            Kernel("expand", "toy", toy_expand),
            Kernel("mul", "toy", toy_mul, frozenset({FLOAT32, FLOAT64})),
        ]
    return Plugin(name, devices=[ToyRuntime()], kernels=kernels)


def full(value, *shape, device="cpu", dtype=FLOAT32):
    return fill_new(shape, value, dtype, tensorplug.core.Device(device))


@pytest.fixture
def make_plugin():
    return Plugin


@pytest.fixture
def toy():
    """The toy device, registered."""
    return plugins.register(toy_plugin())


@pytest.fixture(autouse=True)
def registry():
    """Whatever a test registers is gone after it."""
    keys.dispatch_key(tensorplug.core.Device("cpu"), FLOAT32)  # the default backend stays
    discovery.load_device(entry_points.EXTENSION)  # and what an unknown op would load
    before = {record.name for record in plugins.registered()}
    policy = fallback.fallback_policy()
    yield plugins
    for record in plugins.registered():
        if record.name not in before:
            plugins.unregister(record.name)
    missing = before - {record.name for record in plugins.registered()}
    assert not missing, f"the test unregistered {missing}"
    plugins.manager.removed_devices.clear()
    fallback.set_fallback(policy)
    fallback.fallbacks.clear()


@pytest.fixture
def cpu_numpy_alone(registry):
    """Of the backends for "cpu" only the embedded one stands, whatever else is installed."""
    away = [
        record
        for record in plugins.registered()
        if not record.name.startswith("cpu_numpy")
        and any(kernel.device == "cpu" for kernel in record.kernels)
    ]
    for record in away:
        plugins.unregister(record.name)
    yield
    for record in away:
        plugins.register(record.plugin, record.name)


class FakeEntryPoint:
    """An entry point whose object is made by a function."""

    def __init__(self, name, make, package="tensorplug-fake", version="1.0"):
        self.name = name
        self.make = make
        self.value = f"{package}:{name}"
        self.group = "tensorplug.v1"
        self.dist = types.SimpleNamespace(name=package, version=version)
        self.loads = 0

    def load(self):
        self.loads += 1
        return self.make()


@pytest.fixture
def install(monkeypatch):
    """Make entry points appear as if their packages were installed."""
    monkeypatch.setattr(discovery, "_loaded", dict(discovery._loaded))
    monkeypatch.setattr(discovery, "_quarantine", {})
    monkeypatch.setattr(discovery, "_tried", {"cpu", "meta"})

    def appear(*points, version="1"):
        found = [Found(point, version) for point in points]
        monkeypatch.setattr(entry_points, "_found", [*entry_points.installed(), *found])
        return points

    return appear


def failing(error):
    def load():
        raise error

    return load
