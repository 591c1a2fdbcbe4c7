"""Faults planted into plugins: nothing else breaks, and each message tells whose, why and what helps."""

import itertools
import subprocess
import sys

import pytest

import tensorplug as tp
from tensorplug.cli import doctor
from tensorplug.core.errors import PluginWarning
from tensorplug.core.plugins import discovery
from tensorplug.plugin import (
    DeviceNotAvailableError,
    DeviceRuntime,
    Kernel,
    KernelContractError,
    hookimpl,
)
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

from .conftest import (
    FakeEntryPoint,
    Plugin,
    ToyArray,
    ToyRuntime,
    failing,
    toy_add,
    toy_expand,
    toy_fill_new,
    toy_plugin,
    toy_view,
)

LABEL = r"faulty.main (tensorplug-faulty 0.3)"


class FaultyRuntime(ToyRuntime):
    type = "faulty"


def runtime_of(type_):
    return type("Runtime", (ToyRuntime,), {"type": type_})()


class DiesAtRegistration:
    name = "faulty"

    @hookimpl
    def tensorplug_devices(self):
        return [FaultyRuntime()]

    @hookimpl
    def tensorplug_kernels(self):
        raise OSError("libfaulty.so.1: cannot open shared object file")


def faulty_plugin(**kernels):
    made = {
        "fill_new": toy_fill_new, "view": toy_view, "expand": toy_expand, "add": toy_add, **kernels,
    }  # fmt: skip
    return Plugin(
        "faulty",
        devices=[FaultyRuntime()],
        kernels=[Kernel(op, "faulty", function) for op, function in made.items()],
    )


def wrong_signature(left):
    return left


INSTALL = "`pip install --upgrade tensorplug-faulty` may repair it"

# What is planted: how the plugin is made, the API version, the cause and the fix that the message names.
PLANTED = {
    "raises at import": (failing(ImportError("no libfaulty")), "1", "ImportError: no libfaulty", INSTALL),
    "leaves Python at import": (failing(SystemExit("no licence")), "1", "SystemExit: no licence", INSTALL),
    "an attribute that is not there": (failing(AttributeError("plugin")), "1", "plugin", INSTALL),
    "a later version of the API": (
        failing(AssertionError("imported")), "2", "speaks plugin API v2, this tensorplug v1",
        "`pip install --upgrade tensorplug`",
    ),
    "an earlier version of the API": (
        failing(AssertionError("imported")), "0", "speaks plugin API v0, this tensorplug v1",
        "`pip install --upgrade tensorplug-faulty`",
    ),
    "dies at registration": (
        DiesAtRegistration, "1", "hook tensorplug_kernels raised OSError: libfaulty.so.1", INSTALL,
    ),
    "a kernel of a wrong signature": (
        lambda: faulty_plugin(add=wrong_signature), "1", "does not fit the call (input, other)", INSTALL,
    ),
    "a device named cpu": (
        lambda: Plugin("faulty", devices=[runtime_of("cpu")]), "1", "'cpu' already has a runtime",
        "give yours another name",
    ),
    "the device of somebody else": (
        lambda: Plugin("faulty", devices=[FaultyRuntime(), runtime_of("toy")]), "1",
        "it brings a runtime for 'toy', but the entry points of tensorplug-faulty name faulty",
        "add one named 'toy.<label>' to its pyproject.toml",
    ),
    "a class for a plugin": (lambda: DiesAtRegistration, "1", "is a class", "register an instance"),
    "no hooks": (object, "1", "has no hooks", "@tensorplug.plugin.hookimpl"),
    "no type": (
        lambda: Plugin("faulty", devices=[runtime_of(None)]), "1", "needs an attribute `type`", INSTALL,
    ),
}  # fmt: skip


def everything_else_works():
    assert (tp.ones(2) + 1).tolist() == [2.0, 2.0]
    assert (tp.ones(2, device="toy") + 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("fault", PLANTED)
def test_a_plugin_that_cannot_be_used(install, fault):
    make, version, cause, fix = PLANTED[fault]
    install(FakeEntryPoint("toy.main", toy_plugin))
    install(FakeEntryPoint("faulty.main", make, "tensorplug-faulty", "0.3"), version=version)
    with pytest.warns(PluginWarning) as seen, pytest.raises(DeviceNotAvailableError) as raised:
        tp.ones(2, device="faulty")
    assert len(seen) == 1
    for message in (str(seen[0].message), str(raised.value), str(doctor.report()["quarantined"])):
        for part in (LABEL, cause, fix):
            assert part in message.replace("\\'", "'"), message
    everything_else_works()


def test_first_come_is_not_first_served_on_cpu():
    """Not even where nothing has loaded tensorplug's own kernels yet."""
    script = """
import tensorplug as tp
from tensorplug.plugin import DeviceRuntime, RegistrationError, hookimpl

class Runtime(DeviceRuntime):
    type, array_type = "cpu", bytearray
    def dtype(self, *args): ...
    empty = scalar = copy_into = from_host = to_host = dtype

class Faulty:
    name = "faulty"
    @hookimpl
    def tensorplug_devices(self):
        return [Runtime()]

try:
    tp.plugins.register(Faulty())
except RegistrationError as error:
    assert "plugin faulty: device type 'cpu' already has a runtime, of tensorplug" in str(error), error
else:
    raise AssertionError("it was let in")
assert tp.ones(2).tolist() == [1.0, 1.0]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [
        (lambda input, other: ToyArray((input.data + other.data)[:1]), "returned shape [1]"),
        (
            lambda input, other: ToyArray((input.data + other.data).astype(int)),
            "returned dtype int64",
        ),
        (lambda input, other: None, "returned None"),
        (lambda input, other: (input, other), "returned"),
    ],
    ids=["shape", "dtype", "nothing", "two"],
)
def test_a_kernel_that_returns_what_it_should_not(install, kernel, cause):
    install(FakeEntryPoint("toy.main", toy_plugin))
    install(
        FakeEntryPoint("faulty.main", lambda: faulty_plugin(add=kernel), "tensorplug-faulty", "0.3")
    )
    x = tp.ones(2, device="faulty")
    with pytest.raises(KernelContractError) as raised:
        x + x
    for part in (
        "add: ",
        "faulty (tensorplug-faulty 0.3)",
        __file__,
        cause,
        "report this to the author",
    ):
        assert part in str(raised.value)
    everything_else_works()


def test_a_kernel_that_raises(install):
    def broken(input, other):
        raise ZeroDivisionError("in the driver")

    install(FakeEntryPoint("toy.main", toy_plugin))
    install(
        FakeEntryPoint("faulty.main", lambda: faulty_plugin(add=broken), "tensorplug-faulty", "0.3")
    )
    x = tp.ones(2, device="faulty")
    with pytest.raises(ZeroDivisionError, match="in the driver"):
        x + x
    everything_else_works()


def test_a_kernel_that_leaks_its_results(install):
    """Nothing else breaks by it; the conformance suite finds it, and says whose it is."""
    kept = []

    def leaky(input, other):
        kept.append(ToyArray(input.data + other.data))
        return kept[-1]

    install(FakeEntryPoint("toy.main", toy_plugin))
    install(
        FakeEntryPoint("faulty.main", lambda: faulty_plugin(add=leaky), "tensorplug-faulty", "0.3")
    )
    (record,) = [record for record in all_records() if record.op == "add"]
    with pytest.raises(AssertionError) as raised:
        cases.check_memory(record, "faulty", tp.float32)
    for part in (
        "add Sample",
        "faulty (tensorplug-faulty 0.3)",
        "holds on to 1 of its results",
        "keep no",
    ):
        assert part in str(raised.value)
    everything_else_works()


def test_a_plugin_that_is_slow_to_load(install, monkeypatch, capsys):
    """It costs only who asks for its device; the doctor says whose time it was."""
    clock = itertools.count(step=4.5)
    monkeypatch.setattr(discovery.time, "perf_counter", lambda: next(clock))
    install(FakeEntryPoint("toy.main", toy_plugin))
    (slow,) = install(FakeEntryPoint("faulty.main", faulty_plugin, "tensorplug-faulty", "0.3"))
    everything_else_works()
    assert slow.loads == 0
    report = doctor.report()
    assert slow.loads == 1
    (row,) = [row for row in report["slow"] if "faulty" in row["plugin"]]
    assert row["plugin"] == "faulty (tensorplug-faulty 0.3)"
    assert row["reason"] == "it took 4.5 s to load"
    assert "-X importtime" in row["fix"]
    doctor._print(report)
    assert "slow to load: faulty (tensorplug-faulty 0.3)" in capsys.readouterr().out


def test_a_runtime_that_raises_when_asked(install):
    class Raises(FaultyRuntime):
        def device_count(self):
            raise OSError("driver gone")

    assert issubclass(Raises, DeviceRuntime)
    install(FakeEntryPoint("toy.main", toy_plugin))
    install(FakeEntryPoint("faulty.main", lambda: Plugin("faulty", devices=[Raises()])))
    with pytest.raises((OSError, RuntimeError), match="driver gone"):
        tp.ones(2, device="faulty")
    everything_else_works()
