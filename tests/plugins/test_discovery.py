"""Entry points, without packages: what is loaded when, and what happens to what cannot be."""

import subprocess
import sys
import warnings

import pytest

import tensorplug as tp
from tensorplug.core.errors import PluginWarning
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.core.plugins.entry_points import Found
from tensorplug.plugin import DeviceNotAvailableError

from .conftest import FakeEntryPoint, Plugin, failing, toy_plugin


@pytest.mark.slow
def test_importing_tensorplug_loads_no_plugin():
    script = (
        "import sys, tensorplug\n"
        "assert 'tensorplug_cpu_numpy' not in sys.modules\n"
        "tensorplug.plugins.installed()\n"
        "assert 'tensorplug_cpu_numpy' not in sys.modules\n"
        "tensorplug.zeros(1)\n"
        "assert 'tensorplug_cpu_numpy' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_the_name_tells_the_device_and_nothing_else_is_loaded(install):
    wanted, other = install(
        FakeEntryPoint("toy.one", toy_plugin),
        FakeEntryPoint("other.two", failing(AssertionError())),
    )
    assert (wanted.loads, other.loads) == (0, 0)
    tp.device("toy")
    assert wanted.loads == 0
    assert tp.zeros(2, device="toy").tolist() == [0.0, 0.0]
    assert (wanted.loads, other.loads) == (1, 0)
    tp.zeros(2, device="toy")
    assert wanted.loads == 1
    assert tp.plugins.record_of("toy_plugin").label == "toy_plugin (tensorplug-fake 1.0)"


@pytest.mark.parametrize(
    "error",
    [ImportError("no such library"), AttributeError("plugin"), SystemExit("no licence"), OSError()],
    ids=lambda error: type(error).__name__,
)
def test_what_fails_is_set_aside_and_the_rest_goes_on(install, error):
    bad, good = install(
        FakeEntryPoint("toy.bad", failing(error), "tensorplug-bad"),
        FakeEntryPoint("toy.good", toy_plugin),
    )
    with pytest.warns(PluginWarning, match=r"toy\.bad \(tensorplug-bad 1\.0\) is not used") as seen:
        assert tp.ones(2, device="toy").tolist() == [1.0, 1.0]
    assert len(seen) == 1
    assert seen[0].filename == __file__
    (entry,) = tp.plugins.quarantined()
    assert entry.error is error
    assert "in load\n" in entry.traceback
    assert error.__traceback__ is None, "it would keep the variables of this function alive"
    assert entry.traceback in error.__notes__[0]
    assert f"{type(error).__name__}" in entry.reason
    tp.plugins.load_all()
    assert (bad.loads, good.loads) == (1, 1)


def test_warnings_as_errors_do_not_stop_the_loading(install):
    install(
        FakeEntryPoint("toy.bad", failing(ImportError("gone"))),
        FakeEntryPoint("toy.good", toy_plugin),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PluginWarning):
            tp.ones(2, device="toy")
        assert tp.ones(2, device="toy").tolist() == [1.0, 1.0]


def test_the_device_of_what_fails_gives_the_cause(install):
    error = ImportError("no such library")
    install(FakeEntryPoint("toy.bad", failing(error)))
    with pytest.warns(PluginWarning), pytest.raises(DeviceNotAvailableError) as caught:
        tp.zeros(1, device="toy")
    assert "'toy' has no working plugin: toy.bad (tensorplug-fake 1.0)" in str(caught.value)
    assert "`pip install --upgrade tensorplug-fake`" in str(caught.value)
    assert caught.value.__cause__ is error
    with pytest.raises(DeviceNotAvailableError):  # and no second warning
        tp.zeros(1, device="toy")


@pytest.mark.parametrize(("version", "upgrade"), [("0", "tensorplug-fake"), ("2", "tensorplug")])
def test_another_version_of_the_api_is_not_loaded(install, version, upgrade):
    (point,) = install(FakeEntryPoint("toy.old", toy_plugin), version=version)
    with (
        pytest.warns(PluginWarning, match=f"API v{version}.*pip install --upgrade {upgrade}`"),
        pytest.raises(DeviceNotAvailableError, match="speaks plugin API"),
    ):
        tp.zeros(1, device="toy")
    assert point.loads == 0


def test_a_package_may_speak_two_versions(install):
    install(FakeEntryPoint("toy.new", failing(AssertionError())), version="2")
    install(FakeEntryPoint("toy.now", toy_plugin))
    assert tp.zeros(1, device="toy").tolist() == [0.0]
    assert tp.plugins.quarantined() == []


def test_a_plugin_may_register_itself_when_it_is_imported(install):
    def load():
        plugin = toy_plugin()
        tp.plugins.register(plugin)
        return plugin

    install(FakeEntryPoint("toy.self", load))
    assert tp.zeros(1, device="toy").tolist() == [0.0]
    assert tp.plugins.record_of("toy_plugin").label == "toy_plugin (tensorplug-fake 1.0)"


def test_a_plugin_may_use_tensorplug_while_it_is_loaded(install):
    def load():
        assert (tp.ones(2) + 1).tolist() == [2.0, 2.0]
        with pytest.raises(DeviceNotAvailableError):
            tp.zeros(1, device="toy")
        return toy_plugin()

    install(FakeEntryPoint("toy.busy", load))
    assert tp.zeros(1, device="toy").tolist() == [0.0]


def test_an_unregistered_plugin_is_not_loaded_again(install):
    (point,) = install(FakeEntryPoint("toy.once", toy_plugin))
    tp.zeros(1, device="toy")
    tp.plugins.unregister("toy_plugin")
    with pytest.raises(
        DeviceNotAvailableError, match=r"went away when plugin toy_plugin .*was unreg"
    ):
        tp.zeros(1, device="toy")
    assert point.loads == 1


def test_refresh_looks_again(install, monkeypatch):
    state = {"error": ImportError("not yet")}

    def load():
        if state["error"]:
            raise state["error"]
        return toy_plugin()

    (point,) = install(FakeEntryPoint("toy.later", load))
    with pytest.warns(PluginWarning), pytest.raises(DeviceNotAvailableError):
        tp.zeros(1, device="toy")
    state["error"] = None
    listed = [Found(point, "1")]
    monkeypatch.setattr(discovery, "installed", lambda refresh=False: listed)
    tp.plugins.refresh()
    assert tp.zeros(1, device="toy").tolist() == [0.0]


def test_extensions_are_loaded_for_an_unknown_op(install):
    from tensorplug.core.dispatch.op_registry import get_op
    from tensorplug.plugin import composite

    @composite(name="test.found")
    def found(input):
        """Return the input."""
        return input

    (point,) = install(FakeEntryPoint("extension.ops", lambda: Plugin("ops", ops=[found])))
    tp.ones(1) + 1
    assert point.loads == 0
    assert get_op("test.found") is found.op
    assert point.loads == 1


def test_installed_plugins_are_named_with_package_and_version(install):
    install(FakeEntryPoint("toy.named", toy_plugin, "tensorplug-toy", "3.1"))
    labels = {found.name: found.label for found in tp.plugins.installed()}
    assert labels["toy.named"] == "toy.named (tensorplug-toy 3.1)"
    assert labels["cpu.numpy"].startswith("cpu.numpy (tensorplug ")


def test_a_quarantined_plugins_ops_say_why(install):
    from tensorplug.core.dispatch import op_registry
    from tensorplug.plugin import composite

    @composite(name="shards.glue", method=False)
    def glue(input):
        """Return the input."""
        return input + 1

    install(
        FakeEntryPoint("extension.shards", failing(ImportError("no such library")), "tp-shards")
    )
    tp.core.plugins.discovery._tried.discard("extension")
    reason = (
        r"plugin extension.shards \(tp-shards 1.0\) is in quarantine: ImportError: no such library"
    )
    with pytest.warns(PluginWarning), pytest.raises(KeyError, match=reason):
        op_registry.get_op("shards.glue")
    with pytest.raises(tp.plugin.RegistrationError, match=f"declared but not registered.*{reason}"):
        glue.op.index.__index__()


def test_entry_points_that_nothing_finds_are_reported(monkeypatch):
    import importlib.metadata

    points = importlib.metadata.EntryPoints(
        [
            importlib.metadata.EntryPoint("extension.lost", "lost:plugin", "tensorplug"),
            importlib.metadata.EntryPoint("lost", "lost:plugin", "tensorplug.v1"),
            importlib.metadata.EntryPoint("cpu.fine", "fine:plugin", "tensorplug.v1"),
        ]
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: points)
    monkeypatch.setattr(entry_points, "_found", None)
    assert [found.name for found in entry_points.installed()] == ["cpu.fine"]
    first, second = entry_points.misnamed()
    assert "is in the group 'tensorplug', which nothing reads" in first[1]
    assert "the group 'tensorplug.v1'" in first[2]
    assert (second[0].name, second[1]) == ("lost", "its entry point is named 'lost'")
    assert "'<device type>.<label>'" in second[2]
    monkeypatch.setattr(discovery, "load_all", lambda: None)
    from tensorplug.cli import doctor

    assert [entry["reason"] for entry in doctor.report()["misnamed"]] == [first[1], second[1]]
