"""A plugin is registered whole or not at all, and a refusal names it."""

import re

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.kernel_registry import all_kernels, kernels_for
from tensorplug.plugin import (
    DeviceRuntime,
    Kernel,
    Layer,
    RegistrationError,
    Spec,
    composite,
    derivative,
    hookimpl,
    primitive,
)

from .conftest import FLOAT32, Plugin, ToyArray, ToyRuntime, toy_add, toy_plugin


def runtime(**attributes):
    return type("Altered", (ToyRuntime,), attributes)()


class Bare(DeviceRuntime):
    type = "bare"
    array_type = ToyArray


@composite(name="test.unused")
def unused(input):
    """Return the input."""
    return input


@composite(name="add")
def second_add(input):
    """Return the input."""
    return input


@composite(name="test.sum")
def sum(input):
    """Return the input; its method would hide a method of Tensor."""
    return input


@composite(name="test.half")
def half(input):
    """Return the input; its method would hide one of a base of Tensor."""
    return input


def named(name):
    layer = Layer()
    layer.name = name
    return layer


def one(input):
    return input


def two(input, other):
    return input


REFUSED = {
    "devices: no iterable": ({"devices": 5}, "tensorplug_devices must return an iterable, got 5"),
    "devices: a string": ({"devices": "toy"}, "tensorplug_devices must return an iterable"),
    "devices: no runtime": ({"devices": [5]}, "must return DeviceRuntime objects, got 5"),
    "devices: a class": ({"devices": [ToyRuntime]}, "must return DeviceRuntime objects"),
    "devices: malformed type": ({"devices": [runtime(type="toy:0")]}, "is an identifier.*toy:0"),
    "devices: no array type": ({"devices": [runtime(array_type=None)]}, "needs a class as `arra"),
    "devices: plain array type": ({"devices": [runtime(array_type=list)]}, "list as `array_type`"),
    "devices: unknown capability": (
        {"devices": [runtime(capabilities=frozenset({"warp"}))]},
        r"unknown capabilities \['warp'\]; known are .*'views'",
    ),
    "devices: capabilities no set": ({"devices": [runtime(capabilities=5)]}, "needs a set of nam"),
    "devices: a string for capabilities": (
        {"devices": [runtime(capabilities="views")]},
        "needs a set of names",
    ),
    "devices: dtypes by name": (
        {"devices": [runtime(dtypes=["float32"])]},
        r"needs a set of dtypes as `dtypes`, got \['float32'\]",
    ),
    "devices: incomplete": (
        {"devices": [Bare()]},
        "'bare' does not implement copy_into, dtype, empty, from_host, scalar, to_host",
    ),
    "devices: views without strides": (
        {"devices": [runtime(capabilities=frozenset({"views"}))]},
        "does not implement storage_offset, strides",
    ),
    "devices: taken": ({"devices": [runtime(type="cpu")]}, "'cpu' already has a runtime"),
    "devices: meta is taken": ({"devices": [runtime(type="meta")]}, "'meta' already has a runt"),
    "devices: twice": ({"devices": [ToyRuntime(), ToyRuntime()]}, "'toy' already has a runtime"),
    "ops: no op": ({"ops": [one]}, "declared with primitive.* or composite.*got <function one"),
    "ops: taken": ({"ops": [second_add]}, "op 'add' is already registered by tensorplug"),
    "ops: twice": ({"ops": [unused, unused]}, "'test.unused' is already registered by refused"),
    "ops: the method is taken": ({"ops": [sum]}, "Tensor.sum, which exists already.*method=False"),
    "ops: a base's method is taken": ({"ops": [half]}, "Tensor.half, which exists already"),
    "kernels: no kernel": ({"kernels": [one]}, "must return Kernel objects"),
    "kernels: op is no string": ({"kernels": [Kernel(None, "cpu", two)]}, "named by a string"),
    "kernels: device with index": ({"kernels": [Kernel("add", "cpu:0", two)]}, "without an index"),
    "kernels: device is no string": (
        {"kernels": [Kernel("add", None, two)]},
        "must be a type such",
    ),
    "kernels: meta": ({"kernels": [Kernel("add", "meta", two)]}, "takes no kernels"),
    "kernels: not callable": ({"kernels": [Kernel("add", "cpu", 5)]}, "5 is not callable"),
    "kernels: too few arguments": (
        {"kernels": [Kernel("add", "cpu", one, priority=9)]},
        r"signature \(input\) does not fit the call \(input, other\)",
    ),
    "kernels: too many arguments": (
        {"kernels": [Kernel("neg", "cpu", two, priority=9)]},
        r"does not fit the call \(input\): missing a required argument: 'other'",
    ),
    "kernels: no out": (
        {"kernels": [Kernel("add", "cpu", two, priority=9, out=True)]},
        r"does not fit the call \(input, other, out=array\)",
    ),
    "kernels: universal function": (
        {"kernels": [Kernel("neg", "cpu", np.add, priority=9)]},
        r"takes 2 arrays, the op has 1 arguments \(input\)",
    ),
    "kernels: dtype by name": (
        {"kernels": [Kernel("add", "cpu", two, frozenset({"float32"}), 9)]},
        r"unknown dtype 'float32'; .*dtype_named",
    ),
    "kernels: a foreign dtype": (
        {"kernels": [Kernel("add", "cpu", two, frozenset({np.float32}), 9)]},
        "unknown dtype <class 'numpy.float32'>",
    ),
    "kernels: dtypes no set": (
        {"kernels": [Kernel("add", "cpu", two, 5, 9)]},
        "set of dtypes, go",
    ),
    "kernels: one dtype": (
        {"kernels": [Kernel("add", "cpu", two, FLOAT32, 9)]},
        "a set of dtypes",
    ),
    "kernels: no dtypes": (
        {"kernels": [Kernel("add", "cpu", two, frozenset(), 9)]},
        "dtypes is empty; None stands for any dtype",
    ),
    "kernels: dtypes and accepts": (
        {"kernels": [Kernel("add", "cpu", two, frozenset({FLOAT32}), 9, False, bool)]},
        "either dtypes or accepts",
    ),
    "kernels: accepts is nonsense": (
        {"kernels": [Kernel("add", "cpu", two, None, 9, False, 5)]},
        "accepts 5 is not callable",
    ),
    "kernels: priority": (
        {"kernels": [Kernel("add", "cpu", two, priority="high")]},
        "an int, got",
    ),
    "kernels: priority as bool": (
        {"kernels": [Kernel("add", "cpu", two, priority=True)]},
        "an int",
    ),
    "kernels: twice": (
        {"kernels": [Kernel("add", "cpu", two, priority=9), Kernel("add", "cpu", two, priority=9)]},
        r"same priority \(9\) as another of its own",
    ),
    "derivatives: nonsense": (
        {"derivatives": [5]},
        r"must return derivatives, got 5",
    ),
    "derivatives: unknown op": ({"derivatives": [derivative("ad")]}, "unknown op: no op 'ad'"),
    "derivatives: unknown argument": (
        {"derivatives": [derivative("mul", priority=9, left=lambda g: g)]},
        "formula for 'left', but the op's arguments are input, other",
    ),
    "derivatives: unknown name in a formula": (
        {"derivatives": [derivative("mul", priority=9, input=lambda g, right: g)]},
        "asks for 'right', which is neither an argument",
    ),
    "derivatives: equal priority": (
        {"derivatives": [derivative("mul", input=lambda g: g)]},
        r"same priority \(0\) as the one of autograd",
    ),
    "layers: nonsense": ({"layers": [5]}, "must return Layer objects, got 5"),
    "layers: twice": (
        {"layers": [named("a"), named("a")]},
        "layer named 'a' is already registered",
    ),
}


def state(registry):
    return (
        [record.name for record in registry.registered()],
        sorted(registry.runtimes()),
        sorted(registry.layers()),
        sorted(op.name for op in op_registry.all_ops()),
        len(list(all_kernels())),
        sorted(name for name in dir(tp.Tensor)),
        registry.manager._manager.list_name_plugin(),
    )


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_and_nothing_is_kept(registry, parts, message):
    """Whatever is wrong, all the good parts that come with it go as well."""
    good = Kernel("mul", "cpu", lambda input, other: input, frozenset({FLOAT32}), 77)
    before = state(registry)
    if isinstance(parts.get("kernels"), list):
        parts = {**parts, "kernels": [good, *parts["kernels"]]}
    elif "devices" not in parts and "ops" not in parts:
        parts = {**parts, "ops": [unused], "kernels": [good]}
    with pytest.raises(RegistrationError, match=message) as caught:
        registry.register(Plugin("refused", **parts))
    assert "refused" in str(caught.value)
    assert state(registry) == before
    assert (tp.full((1,), 2.0) * 3).tolist() == [6.0]
    registry.register(Plugin("refused"))  # the name is free again


def test_the_name_is_taken(registry, make_plugin):
    registry.register(make_plugin("twin"))
    with pytest.raises(RegistrationError, match="'twin' is already taken by twin"):
        registry.register(make_plugin("twin"))


def test_a_plugin_is_registered_once_only(registry, make_plugin):
    plugin = make_plugin("once")
    registry.register(plugin)
    with pytest.raises(RegistrationError, match="again: "):
        registry.register(plugin, name="again")
    assert registry.record_of("once") is not None


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (5, "5 has no name"),
        (type("Nameless", (), {})(), "has no name"),
        (type("Numbered", (), {"name": 5})(), "has no name"),
        (type("Empty", (), {"name": "empty"})(), "empty: .* has no hooks; mark .*hookimpl"),
        (Plugin, "Plugin is a class; register an instance"),
    ],
)
def test_what_is_no_plugin_is_refused(registry, plugin, message):
    before = state(registry)
    with pytest.raises(RegistrationError, match=message):
        registry.register(plugin)
    assert state(registry) == before


def test_functions_without_the_mark_are_no_hooks(registry):
    class Unmarked:
        name = "unmarked"

        def tensorplug_kernels(self):
            return []

    with pytest.raises(RegistrationError, match=r"unmarked: .* has no hooks"):
        registry.register(Unmarked())


def test_a_misspelt_hook_is_refused(registry):
    class Misspelt:
        name = "misspelt"

        @hookimpl
        def tensorplug_kernel(self):
            return []

    with pytest.raises(RegistrationError, match=r"misspelt: .*tensorplug_kernel"):
        registry.register(Misspelt())


def test_a_hook_that_raises_is_named(registry):
    class Raising:
        name = "raising"

        @hookimpl
        def tensorplug_kernels(self):
            yield Kernel("mul", "cpu", lambda input, other: input, frozenset({FLOAT32}), 77)
            raise OSError("no such library")

    with pytest.raises(
        RegistrationError, match="raising: its hook tensorplug_kernels raised OSError: no such lib"
    ) as caught:
        registry.register(Raising())
    assert isinstance(caught.value.__cause__, OSError)
    assert kernels_for("mul", "cpu")[-1].priority != 77


def test_a_device_whose_kernels_are_refused_is_not_there(registry):
    bad = Plugin("half", devices=[ToyRuntime()], kernels=[Kernel("neg", "toy", toy_add)])
    with pytest.raises(RegistrationError):
        registry.register(bad)
    with pytest.raises(tp.plugins.manager.PluginError):
        registry.unregister("half")
    with pytest.raises(RuntimeError, match="no plugin provides device 'toy'"):
        tp.zeros(2, device="toy")


def test_equal_priority_names_both_plugins(registry, toy):
    rival = Plugin("rival", kernels=[Kernel("mul", "toy", toy_add, frozenset({FLOAT32}))])
    with pytest.raises(RegistrationError) as caught:
        registry.register(rival)
    text = str(caught.value)
    assert "plugin rival" in text
    assert "plugin toy_plugin" in text
    assert "float32" in text
    assert len(re.findall(r"conftest\.py:\d+", text)) == 2


def test_equal_priority_is_fine_where_the_dtypes_differ(registry, toy):
    int64 = tp.int64
    registry.register(Plugin("other", kernels=[Kernel("mul", "toy", toy_add, frozenset({int64}))]))
    odd = Plugin("odd", kernels=[Kernel("sub", "toy", toy_add, accepts=lambda d: d is tp.int8)])
    even = Plugin("even", kernels=[Kernel("sub", "toy", toy_add, accepts=lambda d: d is tp.int16)])
    registry.register(odd)
    registry.register(even)


def test_a_declared_op_that_nobody_registered_says_so():
    @primitive("input", name="test.lost")
    def lost(input):
        """Return the input."""
        return Spec((input,), input.shape, input.dtype)

    with pytest.raises(RegistrationError, match=r"'test\.lost' is declared but not registered"):
        lost(tp.zeros(2))


def test_lists_of_dtypes_will_do(registry, toy):
    record = registry.register(
        Plugin("lists", kernels=[Kernel("sub", "toy", toy_add, [tp.int8, tp.int16])])
    )
    assert record.kernels[0].dtypes == frozenset({tp.int8, tp.int16})


def test_the_label_has_package_and_version():
    tp.zeros(1)
    record = tp.plugins.record_of("cpu_numpy")
    assert re.fullmatch(r"cpu_numpy \(tensorplug .+\)", record.label)
    assert toy_plugin().name == "toy_plugin"


def test_two_plugins_that_bring_the_same_method(registry, make_plugin):
    def op(name):
        def cap(input):
            """Return the input."""
            return input

        return composite(name=name)(cap)

    registry.register(make_plugin("first", ops=[op("first.cap")]))
    with pytest.raises(
        RegistrationError,
        match=r"second: op 'second.cap' brings the method Tensor.cap, which exists already, brought by "
        r"'first.cap' of first; declare the op with method=False",
    ):
        registry.register(make_plugin("second", ops=[op("second.cap")]))
    assert tp.ones(2).cap().tolist() == [1.0, 1.0]
