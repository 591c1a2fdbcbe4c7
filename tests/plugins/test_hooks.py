"""Every hook is typed, documented and tested."""

import inspect
import typing
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.core import plugins
from tensorplug.core.dispatch import explain, op_registry
from tensorplug.core.dispatch.autocast_policies import policy_of
from tensorplug.core.plugins import hookspecs, manager
from tensorplug.plugin import (
    Advice,
    AutocastPolicy,
    Fuser,
    Kernel,
    Layer,
    ProcessGroupBackend,
    RegistrationError,
    RuntimeExtension,
    composite,
    derivative,
    first_dim_is_batch,
    hookimpl,
    linear,
    tangent,
    vmap_rule,
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
        "tensorplug_advice",
        "tensorplug_autocast",
        "tensorplug_derivatives",
        "tensorplug_devices",
        "tensorplug_fusers",
        "tensorplug_kernels",
        "tensorplug_layers",
        "tensorplug_ops",
        "tensorplug_process_groups",
        "tensorplug_records",
        "tensorplug_runtime_extensions",
        "tensorplug_tangents",
        "tensorplug_vmap_rules",
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
    assert not op_registry.has_op("test.twice")
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


def test_tensorplug_tangents(registry):
    class Only:
        name = "only_a_tangent"

        @hookimpl
        def tensorplug_tangents(self):
            return [
                tangent("neg", priority=5, input=lambda t: t + t),
                [linear("cumsum", priority=1)],
            ]

    def pushed():
        return tp.func.jvp(tp.neg, (full(1.0, 2),), (full(1.0, 2),))[1].tolist()

    assert pushed() == [-1.0, -1.0]
    record = registry.register(Only())
    assert [item.op for item in record.tangents] == ["neg", "cumsum"]
    assert pushed() == [2.0, 2.0]
    registry.unregister("only_a_tangent")
    assert pushed() == [-1.0, -1.0]


@pytest.mark.parametrize("op", ["sum", "neg", "softmax", "linalg_inv"])
def test_tensorplug_vmap_rules(registry, op):
    """Of a primitive and of a composite, with a rule of core's and without."""
    calls = []

    def rule(info, in_dims, input, *rest):
        calls.append((info.batch_size, in_dims[0]))
        return NotImplemented if rest[:1] == (0,) else (input, in_dims[0])

    class Only:
        name = "only_a_vmap_rule"

        @hookimpl
        def tensorplug_vmap_rules(self):
            return [vmap_rule(op, rule, priority=1)]

    x = tp.rand(3, 2, 2) + 2 * tp.eye(2)
    function = {"sum": lambda x: x.sum(-1), "softmax": lambda x: x.softmax(-1)}.get(
        op, tp.core.dispatch.op_registry.get_op(op).call
    )
    expected = tp.stack([function(row) for row in x])
    assert tp.allclose(tp.vmap(function)(x), expected)
    record = registry.register(Only())
    assert [item.op for item in record.vmap_rules] == [op]
    assert tp.vmap(function)(x) is not None
    assert calls == [(3, 0)]
    # What the rule does not serve goes on to core's.
    if op == "softmax":
        assert tp.allclose(tp.vmap(lambda x: x.softmax(0))(x), tp.softmax(x, 1))
        assert len(calls) == 2
    registry.unregister("only_a_vmap_rule")
    assert tp.allclose(tp.vmap(function)(x), expected)


HANDED_OVER = {
    "derivatives": lambda **kwargs: derivative("neg", input=lambda g: g, **kwargs),
    "tangents": lambda **kwargs: linear("neg", **kwargs),
    "vmap_rules": lambda **kwargs: vmap_rule("neg", lambda info, dims, x: (x, dims[0]), **kwargs),
}


def plugin_with(name, **returned):
    functions = {f"tensorplug_{hook}": (lambda self, v=v: v) for hook, v in returned.items()}
    return type("Given", (), {"name": name, **{k: hookimpl(f) for k, f in functions.items()}})()


@pytest.mark.parametrize("hook", HANDED_OVER)
def test_of_several_for_an_op_the_highest_priority_serves(registry, hook):
    make = HANDED_OVER[hook]
    record = registry.register(plugin_with("first", **{hook: [make(priority=3)]}))
    rules = manager.op_rules[hook]
    serving = rules.active["neg"]
    registry.register(plugin_with("second", **{hook: [make(priority=2)]}))
    assert rules.active["neg"] is serving
    assert getattr(record, hook)[0].priority == 3
    with pytest.raises(RegistrationError, match=r"third: .* of 'neg' .*\(3\) as the one of first"):
        registry.register(plugin_with("third", **{hook: [make(priority=3)]}))
    with pytest.raises(RegistrationError, match=r"fourth: .* as another of its own"):
        registry.register(plugin_with("fourth", **{hook: [make(priority=7), make(priority=7)]}))
    registry.unregister("first")
    assert rules._ranked["neg"][0][0].owner == "second"
    registry.unregister("second")
    assert rules.active.get("neg") is not serving


@pytest.mark.parametrize("hook", HANDED_OVER)
def test_what_is_returned_from_the_wrong_hook_is_refused(registry, hook):
    for other, make in HANDED_OVER.items():
        if other != hook:
            with pytest.raises(RegistrationError, match=f"return it from tensorplug_{other}"):
                registry.register(plugin_with("confused", **{hook: [make()]}))
    with pytest.raises(RegistrationError, match=r"the priority of .* must be an int"):
        registry.register(plugin_with("confused", **{hook: [HANDED_OVER[hook](priority="high")]}))


def test_samples_can_be_joined_with_the_first_dimension(registry):
    @composite(name="test.scaled_rows", method=False)
    def scaled_rows(input, factor):
        """Return a batch of rows times a factor."""
        assert input.shape[0] == 6
        return input * factor

    registry.register(
        plugin_with(
            "joined", ops=[scaled_rows], vmap_rules=[first_dim_is_batch("test.scaled_rows")]
        )
    )
    x = tp.rand(3, 2, 4)
    assert tp.equal(tp.vmap(lambda x: scaled_rows(x, 2.0))(x), x * 2)


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


class Groups(ProcessGroupBackend):
    name, device_types = "pigeons", frozenset(["toy"])

    def connect(self, rendezvous):
        raise NotImplementedError


def bringing(name, *backends):
    class Only:
        @hookimpl
        def tensorplug_process_groups(self):
            return backends

    Only.name = name
    return Only()


def test_tensorplug_process_groups(registry):
    slow, fast = Groups(), Groups()
    fast.priority = 5
    registry.register(bringing("slow_groups", slow))
    registry.register(bringing("fast_groups", fast))
    found = [b for b in manager.process_group_backends() if b.name == "pigeons"]
    assert found == [fast, slow]
    assert tp.distributed.is_backend_available("Pigeons")
    registry.unregister("fast_groups")
    assert fast not in manager.process_group_backends()
    registry.unregister("slow_groups")
    assert not tp.distributed.is_backend_available("pigeons")


def changed(**attributes):
    backend = Groups()
    for name, value in attributes.items():
        setattr(backend, name, value)
    return backend


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        ([object()], "ProcessGroupBackend objects"),
        ([changed(name="Pigeons")], "small letters, got 'Pigeons'"),
        ([changed(name=None)], "small letters, got None"),
        ([changed(device_types=["toy"])], "frozenset of device types"),
        ([changed(device_types=frozenset())], "frozenset of device types"),
        ([changed(priority="high")], "the priority must be an int, got 'high'"),
        ([Groups(), Groups()], "and so have those of plugin bad_groups"),
    ],
)
def test_malformed_process_groups_are_refused(registry, backends, message):
    with pytest.raises(RegistrationError, match="plugin bad_groups: .*" + message):
        registry.register(bringing("bad_groups", *backends))


def test_process_groups_of_equal_priority_are_refused(registry):
    registry.register(bringing("first_groups", Groups()))
    with pytest.raises(RegistrationError, match=r"second_groups.* priority 0, .*first_groups"):
        registry.register(bringing("second_groups", Groups()))


class Idle(Fuser):
    name, device_type = "idle", "toy"

    def regions(self, program):
        return []

    def compile(self, program, region, inputs, outputs):
        raise NotImplementedError


def with_fusers(name, *fusers):
    class Only:
        @hookimpl
        def tensorplug_fusers(self):
            return fusers

    Only.name = name
    return Only()


def test_tensorplug_fusers(registry):
    slow, fast = Idle(), Idle()
    fast.priority = 5
    registry.register(with_fusers("slow_fusers", slow))
    registry.register(with_fusers("fast_fusers", fast))
    assert [fuser for fuser, _ in manager.fusers_of("toy")] == [fast, slow]
    registry.unregister("fast_fusers")
    assert [fuser for fuser, _ in manager.fusers_of("toy")] == [slow]


def idle(**attributes):
    fuser = Idle()
    for name, value in attributes.items():
        setattr(fuser, name, value)
    return fuser


@pytest.mark.parametrize(
    ("fusers", "message"),
    [
        ([object()], "Fuser objects"),
        ([idle(name=None)], "`name` that is an identifier, got None"),
        ([idle(device_type="a b")], "`device_type` that is an identifier, got 'a b'"),
        ([idle(priority="high")], "the priority must be an int, got 'high'"),
        ([Idle(), Idle()], "priority 0 on 'toy', and so has 'idle' of plugin bad_fusers"),
    ],
)
def test_malformed_fusers_are_refused(registry, fusers, message):
    with pytest.raises(RegistrationError, match="plugin bad_fusers: .*" + message):
        registry.register(with_fusers("bad_fusers", *fusers))
    assert not manager.fusers_of("toy")


def test_tensorplug_advice(registry):
    class Only:
        name = "only_advice"

        @hookimpl
        def tensorplug_advice(self):
            return [Advice("BLAS", "missing", "pip install acme-blas")]

    registry.register(Only())
    assert ("only_advice", Advice("BLAS", "missing", "pip install acme-blas")) in manager.advice()


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


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("formula", "got"),
    [
        (lambda g: g.sum(), r"shape \[\], expected \[2, 3\]"),
        (lambda g: g[0], r"shape \[3\], expected \[2, 3\]"),
        (lambda g: g > 0, "dtype bool, expected float32"),
        (lambda g: 1.0, "float, expected a tensor"),
    ],
)
def test_a_derivative_is_held_to_its_argument(registry, create_graph, formula, got):
    registry.register(
        plugin_with("wrong", derivatives=[derivative("neg", input=formula, priority=1)])
    )
    for result in (lambda x: -x, lambda x: (-x) * 2):
        x = tp.ones(2, 3, requires_grad=True)
        message = f"neg: the derivative by 'input', from plugin wrong, returned {got}"
        with pytest.raises(tp.core.errors.DerivativeContractError, match=message):
            tp.autograd.grad(result(x).sum(), x, create_graph=create_graph)
    registry.unregister("wrong")
    assert tp.autograd.grad((-x).sum(), x)[0].tolist() == [[-1.0] * 3] * 2


@pytest.mark.parametrize("create_graph", [False, True])
def test_broadcasting_is_undone_before_a_derivative_is_checked(registry, create_graph):
    x, row = tp.ones(2, 3), tp.ones(3, requires_grad=True)

    def gradient(formula):
        given = derivative("mul", input=formula, other=lambda g, input: g * input, priority=1)
        registry.register(plugin_with("broadcasting", derivatives=[given]))
        try:
            return tp.autograd.grad((row * x).sum(), row, create_graph=create_graph)[0].tolist()
        finally:
            registry.unregister("broadcasting")

    assert gradient(lambda g, other: g * other) == [2.0] * 3
    with pytest.raises(
        tp.core.errors.DerivativeContractError, match=r"'input'.* returned shape \[\]"
    ):
        gradient(lambda g, other: g.sum())


def test_a_tangent_is_held_to_the_output(registry):
    for formula, got in (
        (lambda t: t.sum(), r"shape \[\], expected \[2, 3\]"),
        (lambda t: t.to(tp.complex64), "dtype complex64, expected float32"),
        (lambda t: 1.0, "float, expected a tensor"),
    ):
        wrong = plugin_with("wrong", tangents=[tangent("neg", input=formula, priority=1)])
        registry.register(wrong)
        message = f"neg: the tangent by 'input', from plugin wrong, returned {got}"
        with pytest.raises(tp.core.errors.DerivativeContractError, match=message):
            tp.func.jvp(tp.neg, (tp.ones(2, 3),), (tp.ones(2, 3),))
        registry.unregister("wrong")


@pytest.mark.parametrize("op", ["neg", "mul", "sum", "softmax"])
def test_a_kernel_that_raises_is_named(registry, op):
    def failing(*args):
        raise OSError("no such unit")

    registry.register(
        plugin_with("failing", kernels=[Kernel(op, "cpu", failing, frozenset({FLOAT32}), TOP)])
    )
    arguments = {"mul": (2.0,), "softmax": (0,)}.get(op, ())
    for _ in range(2):
        with pytest.raises(OSError, match="no such unit") as caught:
            getattr(tp.ones(2, 3), op)(*arguments)
        (note,) = caught.value.__notes__
        assert note.startswith("raised by the kernel of failing (")
        assert f"for {op}(float32 [2, 3]" in note
        assert note.endswith("on cpu")


def test_an_op_needs_its_package_in_front(registry):
    @composite(name="unprefixed", method=False)
    def unprefixed(input):
        """Return the input."""
        return input

    with pytest.raises(RegistrationError, match=r'declare it with name="my_ops.unprefixed"'):
        registry.register(plugin_with("my_ops", ops=[unprefixed]))
