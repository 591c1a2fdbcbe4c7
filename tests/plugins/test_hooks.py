"""Every hook is typed, documented and tested."""

import inspect
import typing
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.core import explain, operators, plugins
from tensorplug.core.autocast_policies import policy_of
from tensorplug.core.plugins import hookspecs, manager
from tensorplug.plugin import (
    AutocastPolicy,
    Kernel,
    Layer,
    RegistrationError,
    RuntimeExtension,
    composite,
    derivative,
    hookimpl,
)
from tensorplug.testing.records import OpRecord, all_records

from .conftest import FLOAT32, TOP, Plugin, ToyRuntime, full, toy_add, toy_fill_new

HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if name.startswith("tensorplug_") and inspect.isfunction(function)
}
TESTS = "\n".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))


def test_these_are_the_hooks():
    assert sorted(HOOKS) == [
        "tensorplug_autocast",
        "tensorplug_derivatives",
        "tensorplug_devices",
        "tensorplug_kernels",
        "tensorplug_layers",
        "tensorplug_ops",
        "tensorplug_records",
        "tensorplug_runtime_extensions",
    ]


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_a_specification(name):
    assert name in dir(manager._manager.hook)
    assert HOOKS[name].tensorplug_spec


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_typed(name):
    returned = HOOKS[name].__annotations__["return"]
    assert returned.startswith("Iterable[")
    assert returned != "Iterable[Any]"
    assert set(HOOKS[name].__annotations__) == {
        *inspect.signature(HOOKS[name]).parameters,
        "return",
    }


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented(name):
    doc = inspect.getdoc(HOOKS[name])
    assert doc is not None
    for section in ("Returns\n-------", "Examples\n--------", f"def {name}(self):"):
        assert section in doc


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_has_a_test(name):
    assert f"def test_{name}(" in TESTS


def test_the_plugin_api_names_what_the_hooks_take():
    from tensorplug import plugin

    for name in ("DeviceRuntime", "Op", "Kernel", "Layer", "derivative", "not_differentiable"):
        assert name in plugin.__all__
    assert all(hasattr(plugin, name) for name in plugin.__all__)
    assert typing.get_type_hints(plugin.Kernel)


def test_tensorplug_devices(registry):
    class Only:
        name = "only_a_device"

        @hookimpl
        def tensorplug_devices(self):
            yield ToyRuntime()

    record = registry.register(Only())
    assert [runtime.type for runtime in record.devices] == ["toy"]
    assert "toy" in registry.runtimes()
    registry.unregister("only_a_device")
    assert "toy" not in registry.runtimes()


def test_tensorplug_kernels(registry):
    class Only:
        name = "only_a_kernel"

        @hookimpl
        def tensorplug_kernels(self):
            return [Kernel("neg", "cpu", lambda input: input * 0, frozenset({FLOAT32}), TOP)]

    registry.register(Only())
    assert (-full(2.0, 2)).tolist() == [0.0, 0.0]
    registry.unregister("only_a_kernel")
    assert (-full(2.0, 2)).tolist() == [-2.0, -2.0]


def test_tensorplug_ops(registry):
    @composite(name="test.twice")
    def twice(input):
        """Return twice the input."""
        return input + input

    class Only:
        name = "only_an_op"

        @hookimpl
        def tensorplug_ops(self):
            return [twice]

    registry.register(Only())
    assert twice(full(1.0, 2)).tolist() == [2.0, 2.0]
    assert full(1.0, 2).twice().tolist() == [2.0, 2.0]
    assert explain.explain("test.twice").way == "decomposition"
    registry.unregister("only_an_op")
    assert not operators.has_op("test.twice")
    assert not hasattr(full(1.0, 2), "twice")


def test_tensorplug_derivatives(registry):
    class Only:
        name = "only_a_derivative"

        @hookimpl
        def tensorplug_derivatives(self):
            return [derivative("neg", priority=5, input=lambda g: g + g)]

    def gradient():
        x = full(1.0, 2).requires_grad_()
        (-x).sum().backward()
        return x.grad.tolist()

    assert gradient() == [-1.0, -1.0]
    registry.register(Only())
    assert gradient() == [2.0, 2.0]
    registry.unregister("only_a_derivative")
    assert gradient() == [-1.0, -1.0]


def test_tensorplug_autocast(registry):
    class Policies:
        name = "only_policies"

        @hookimpl
        def tensorplug_autocast(self):
            return [AutocastPolicy("neg", "float32", "toy")]

    record = registry.register(Policies())
    assert [policy.plugin for policy in record.autocast] == ["only_policies"]
    assert policy_of("neg", "toy") == "float32"
    assert policy_of("neg", "cpu") is None
    registry.unregister("only_policies")
    assert policy_of("neg", "toy") is None


def test_tensorplug_layers(registry):
    class Count(Layer):
        name, order, nested = "test_count", 100, True
        calls = 0

        def __call__(self, op, args, kwargs, proceed):
            self.calls += 1
            return proceed(*args, **kwargs)

    class Only:
        name = "only_a_layer"

        @hookimpl
        def tensorplug_layers(self):
            return [Count()]

    registry.register(Only())
    count = registry.layers()["test_count"]
    with count.active():
        full(1.0, 2) + 1
    assert count.calls == 2
    full(1.0, 2) + 1
    assert count.calls == 2
    registry.unregister("only_a_layer")
    assert "test_count" not in registry.layers()


def test_tensorplug_runtime_extensions(registry):
    class Memory(RuntimeExtension):
        type = "cpu"
        namespace: typing.ClassVar = {"set_shelf": "a shelf"}
        told: typing.ClassVar = []

        def set_num_threads(self, number):
            self.told.append(number)

        def memory_stats(self, index):
            return {"shelved": 7}

        def reset_peak_memory_stats(self, index):
            self.told.append("reset")

        def empty_cache(self):
            self.told.append("empty")

    class Only:
        name = "only_an_extension"

        @hookimpl
        def tensorplug_runtime_extensions(self):
            return [Memory()]

    registry.register(Only())
    before = tp.get_num_threads()
    try:
        tp.set_num_threads(1)
    finally:
        tp.set_num_threads(before)
    assert Memory.told[-2:] == [1, before]
    assert tp.cpu.memory_stats()["shelved"] == 7
    tp.cpu.reset_peak_memory_stats()
    tp.cpu.empty_cache()
    assert Memory.told[-2:] == ["reset", "empty"]
    assert tp.cpu.set_shelf == "a shelf"
    registry.unregister("only_an_extension")
    assert "shelved" not in tp.cpu.memory_stats()
    with pytest.raises(AttributeError, match="set_shelf"):
        tp.cpu.set_shelf  # noqa: B018


@pytest.mark.parametrize("extension", [object(), RuntimeExtension()])
def test_a_malformed_runtime_extension_is_refused(registry, extension):
    class Only:
        name = "only_a_bad_extension"

        @hookimpl
        def tensorplug_runtime_extensions(self):
            return [extension]

    with pytest.raises(RegistrationError, match="only_a_bad_extension"):
        registry.register(Only())


def test_tensorplug_records(registry):
    asked = []

    class Only:
        name = "only_a_record"

        @hookimpl
        def tensorplug_records(self):
            asked.append(True)
            return [OpRecord("test.thrice", samples=lambda make, dtype: [])]

    registry.register(Only())
    assert not asked
    assert "test.thrice" in [record.op for record in all_records()]
    registry.unregister("only_a_record")
    assert "test.thrice" not in [record.op for record in all_records()]


def test_a_module_can_be_a_plugin(registry, tmp_path, monkeypatch):
    (tmp_path / "module_plugin.py").write_text(
        "from tensorplug.plugin import hookimpl\n"
        "@hookimpl\n"
        "def tensorplug_kernels():\n"
        "    return []\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    import module_plugin

    assert registry.register(module_plugin).name == "module_plugin"


def test_the_hooks_run_in_the_order_of_the_specifications(registry):
    order = []

    class Ordered(Plugin):
        @hookimpl
        def tensorplug_layers(self):
            order.append("layers")
            return []

        @hookimpl
        def tensorplug_kernels(self):
            order.append("kernels")
            return [Kernel("add", "toy", toy_add), Kernel("fill_new", "toy", toy_fill_new)]

        @hookimpl
        def tensorplug_devices(self):
            order.append("devices")
            return [ToyRuntime()]

    plugins.register(Ordered("ordered"))
    assert order == ["devices", "kernels", "layers"]
