"""A kernel for an op that is not registered waits until it is."""

import subprocess
import sys

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.kernel_registry import all_kernels, kernels_for
from tensorplug.plugin import (
    ALL_DTYPES,
    DeferredKernels,
    Kernel,
    PluginError,
    RegistrationError,
    composite,
    hookimpl,
)
from tensorplug.testing import cases, device_cases
from tensorplug.testing.records import all_records

from .conftest import FLOAT32, TOP, Plugin


@composite(name="acme.smooth", method=False)
def smooth(input):
    """Return the input."""
    return input * 1


def doubled(input):
    return input * 2


def wrong(input, other):
    return input


def smooth_kernel(**changes):
    return Kernel(**{"op": "acme.smooth", "device": "cpu", "function": doubled, **changes})


def ops_of(waiting):
    return [(entry.plugin, entry.op) for entry in waiting]


def test_a_kernel_waits_for_its_op_and_is_taken_back_with_its_plugin(registry):
    registry.register(Plugin("early", kernels=[smooth_kernel()]))
    assert ops_of(registry.waiting_kernels()) == [("early", "acme.smooth")]
    registry.register(Plugin("acme", ops=[smooth]))
    assert registry.waiting_kernels() == []
    assert tp.explain("acme.smooth").kernel.plugin == "early"
    assert smooth(tp.tensor([3.0])).item() == 6
    registry.unregister("acme")
    assert ops_of(registry.waiting_kernels()) == [("early", "acme.smooth")]
    registry.register(Plugin("acme", ops=[smooth]))
    assert smooth(tp.tensor([3.0])).item() == 6
    registry.unregister("early")
    assert smooth(tp.tensor([3.0])).item() == 3
    registry.register(Plugin("early", kernels=[smooth_kernel()]))
    registry.unregister("acme")
    registry.unregister("early")
    assert registry.waiting_kernels() == []


def test_a_plugin_with_the_op_keeps_its_kernel_and_the_higher_one_runs(registry):
    registry.register(Plugin("early", kernels=[smooth_kernel(priority=1)]))
    own = smooth_kernel(function=lambda input: input * 3)
    registry.register(Plugin("acme", ops=[smooth], kernels=[own]))
    assert [kernel.plugin for kernel in kernels_for("acme.smooth", "cpu")] == ["acme", "early"]
    assert smooth(tp.tensor([3.0])).item() == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "cpu:0"}, "without an index"),
        ({"function": 5}, "5 is not callable"),
        ({"dtypes": frozenset({"float32"})}, "unknown dtype 'float32'"),
        ({"priority": "high"}, "an int, got"),
    ],
)
def test_what_can_be_checked_is_checked_at_registration(registry, changes, message):
    with pytest.raises(RegistrationError, match=message):
        registry.register(Plugin("early", kernels=[smooth_kernel(**changes)]))
    assert registry.waiting_kernels() == []


def test_two_that_wait_need_two_priorities(registry):
    registry.register(Plugin("early", kernels=[smooth_kernel()]))
    with pytest.raises(RegistrationError, match=r"same priority .* as the one of plugin early"):
        registry.register(Plugin("rival", kernels=[smooth_kernel()]))


@pytest.mark.parametrize("kernel", [smooth_kernel(function=wrong), smooth_kernel(priority=7)])
def test_one_that_does_not_fit_is_set_aside_alone(registry, kernel):
    """Its signature is wrong, or the plugin with the op has a kernel of the same priority."""
    good = smooth_kernel(dtypes=frozenset({FLOAT32}), priority=9)
    registry.register(Plugin("early", kernels=[kernel, good]))
    acme = Plugin("acme", ops=[smooth], kernels=[smooth_kernel(priority=7)])
    with pytest.warns(tp.core.errors.PluginWarning, match=r"early: kernel for op 'acme.smooth'"):
        registry.register(acme)
    (entry,) = registry.quarantined_kernels()
    assert (entry.plugin, entry.op) == ("early", "acme.smooth")
    assert [k.plugin for k in kernels_for("acme.smooth", "cpu")] == ["acme", "early"]
    assert smooth(tp.tensor([3.0])).item() == 6
    with pytest.raises(AssertionError, match=r"early: kernel for op 'acme.smooth'"):
        device_cases.check_kernels_in_use("cpu")
    registry.unregister("early")
    assert registry.quarantined_kernels() == []
    device_cases.check_kernels_in_use("cpu")


def test_a_misspelt_name_is_found(registry):
    """The warning is given once; a name of a package that is not there is nobody's mistake."""
    kernels = [Kernel("sofmax", "cpu", doubled), Kernel("optim.sgd_stepp", "cpu", doubled)]
    with pytest.warns(tp.core.errors.PluginWarning) as caught:
        registry.register(Plugin("early", kernels=[*kernels, smooth_kernel()]))
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert "plugin early" in texts[0]
    assert "op 'sofmax', which no plugin registers; did you mean softmax" in texts[0]
    assert "did you mean optim.sgd_step" in texts[1]
    assert [entry.misspelt for entry in registry.waiting_kernels()] == [True, True, False]
    registry.manager.dispatch_state.find_extensions()
    with pytest.raises(AssertionError, match="did you mean softmax"):
        device_cases.check_kernels_in_use("cpu")


def test_deferred_kernels_are_built_when_their_extension_is_there(registry):
    built = []

    def build():
        built.append("acme")
        return [smooth_kernel()]

    registry.register(Plugin("early", kernels=[DeferredKernels("acme", build)]))
    (entry,) = registry.waiting_kernels()
    assert (entry.extension, entry.misspelt) == ("acme", False)
    assert "kernels wait for the plugin 'acme'" in str(entry)
    registry.register(Plugin("acme", ops=[smooth]))
    registry.register(Plugin("late", kernels=[DeferredKernels("early", list)]))
    assert built == ["acme"]
    assert smooth(tp.tensor([3.0])).item() == 6
    assert registry.waiting_kernels() == []
    registry.unregister("early")
    registry.register(Plugin("early", kernels=[DeferredKernels("acme", build)]))
    assert built == ["acme", "acme"]


@pytest.mark.parametrize(
    ("build", "message"),
    [(lambda: 1 / 0, "division by zero"), (lambda: [5], "must return Kernel objects, got 5")],
)
def test_deferred_kernels_that_cannot_be_built(registry, build, message):
    registry.register(Plugin("early", kernels=[DeferredKernels("acme", build)]))
    with pytest.warns(tp.core.errors.PluginWarning, match=message):
        registry.register(Plugin("acme", ops=[smooth]))
    (entry,) = registry.quarantined_kernels()
    assert (entry.plugin, entry.op) == ("early", "acme")
    with pytest.raises(PluginError, match=message):
        registry.register(Plugin("late", kernels=[DeferredKernels("acme", build)]))


@pytest.mark.parametrize("deferred", [DeferredKernels("", list), DeferredKernels("acme", 5)])
def test_deferred_kernels_need_a_plugin_and_a_function(registry, deferred):
    with pytest.raises(RegistrationError, match="needs the name of a plugin and a function"):
        registry.register(Plugin("early", kernels=[deferred]))


def test_a_hook_of_kernels_may_be_a_generator(registry):
    class Early:
        name = "early"

        @hookimpl
        def tensorplug_kernels(self):
            yield smooth_kernel()
            yield DeferredKernels("acme", list)

    registry.register(Early())
    assert len(registry.waiting_kernels()) == 2


# --- the backends ---------------------------------------------------------------------------------


def own_kernels(plugin):
    own = {}
    for kernel in all_kernels():
        if (kernel.device, kernel.plugin) == ("cpu", plugin):
            own.setdefault(kernel.op, []).append(kernel)
    return own


def test_inside_prefer_every_op_runs_the_backends_own_kernel(registry):
    """The kernels of a rival, above it at all its dtypes, fail; each sample of its ops runs without them."""
    registry.load_all()
    records = list(all_records())

    def failing(*arguments):
        raise AssertionError("the rival's kernel ran")

    own = own_kernels("cpu_numpy")
    assert {"add", "sum", "linear", "optim.sgd_step"} <= own.keys()
    rivals = []
    for op, kernels in own.items():
        served = [dtype for dtype in ALL_DTYPES if any(k.serves(dtype) for k in kernels)]
        rivals.append(Kernel(op, "cpu", failing, frozenset(served), TOP))
    with tp.prefer("cpu_numpy"):
        samples = [
            (record, sample)
            for record in records
            if record.op in own and FLOAT32 in record.dtypes
            for sample in cases.samples_of(record, "cpu", FLOAT32)[:1]
        ]
        registry.register(Plugin("rival", kernels=rivals))
        for record, sample in samples:
            cases.call(op_registry.get_op(record.op), sample)
        assert F.conv2d(tp.ones(1, 1, 3, 3), tp.ones(1, 1, 3, 3)).item() == 9
    assert len({record.op for record, _ in samples}) > 100
    with pytest.raises(AssertionError, match="the rival's kernel ran"):
        F.conv2d(tp.ones(1, 1, 3, 3), tp.ones(1, 1, 3, 3))


LAZY = """
EXTENSIONS = ("tensorplug.nn", "tensorplug.optim", "tensorplug.sparse")
import sys
import tensorplug as tp
assert (tp.ones(2) + 1).tolist() == [2.0, 2.0]
assert [name for name in sys.modules if name.startswith(EXTENSIONS)] == []
assert {entry.extension for entry in tp.plugins.waiting_kernels()} >= {"nn", "optim", "sparse"}
import tensorplug.nn.functional as F
import tensorplug.optim
import tensorplug.sparse
assert tp.plugins.waiting_kernels() == [], tp.plugins.waiting_kernels()
"""


def test_the_first_op_loads_no_extension():
    subprocess.run([sys.executable, "-W", "error", "-c", LAZY], check=True)
