"""The commands of ``tensorplug``: what they print, for people and as JSON, and how they fail."""

import json
from xml.etree import ElementTree as ET

import pytest

import tensorplug as tp
from tensorplug.cli import conformance, main, output
from tensorplug.plugin import Advice, DeviceRuntime, Kernel, hookimpl


def printed(capsys, *arguments, status=0):
    assert main(arguments) == status
    return capsys.readouterr()


def as_json(capsys, *arguments, status=0):
    return json.loads(printed(capsys, *arguments, "--json", status=status).out)


@pytest.fixture
def absent_device():
    """Register a device whose driver is missing."""

    class Runtime(DeviceRuntime):
        type, array_type = "absent", bytearray

        def unavailable_reason(self):
            return "no driver; install one"

        def dtype(self, *args):
            raise NotImplementedError

        empty = scalar = copy_into = from_host = to_host = dtype

    class Absent:
        name = "absent_plugin"

        @hookimpl
        def tensorplug_devices(self):
            return [Runtime()]

    tp.plugins.register(Absent())
    yield
    tp.plugins.unregister("absent_plugin")


class TestDoctor:
    def test_report(self, capsys):
        report = as_json(capsys, "doctor")
        assert report["versions"]["tensorplug"].startswith(tp.__version__)
        found = {row["plugin"]: row for row in report["plugins"]}
        assert found["cpu_numpy"]["package"] == "tensorplug"
        assert found["cpu_numpy"]["state"] == "in use"
        assert found["cpu_numpy"]["kernels"] > 100
        assert found["nn"]["serves"] == "every device"
        assert report["quarantined"] == []
        assert report["threads"]["tensorplug"] == tp.get_num_threads()

    def test_text(self, capsys):
        text = printed(capsys, "doctor").out
        for part in ("versions", "plugins", "devices", "threads", "cpu_numpy", "nothing is wrong"):
            assert part in text

    def test_speed(self, capsys, monkeypatch):
        class Slow:
            name = "slow"

            @hookimpl
            def tensorplug_advice(self):
                return [Advice("BLAS", "missing", "pip install acme-blas")]

        tp.plugins.register(Slow())
        monkeypatch.setattr(tp, "compiled", lambda: False)
        try:
            rows = {row["what"]: row for row in as_json(capsys, "doctor")["speed"]}
            text = printed(capsys, "doctor").out
        finally:
            tp.plugins.unregister("slow")
        assert rows["BLAS"] == {"what": "BLAS", "state": "missing", "fix": "pip install acme-blas"}
        assert rows["compiled hot path"]["state"] == "runs as Python"
        assert "with a C compiler" in rows["compiled hot path"]["fix"]
        fast = rows["compiled kernels"]
        assert (fast["state"] == "in use") != ("pip install" in fast["fix"])
        assert f"{tp.get_num_threads()} of " in rows["threads"]["state"]
        assert "for more speed: compiled hot path" in text

    @pytest.mark.filterwarnings("ignore:plugin misspelt")
    def test_a_misspelt_op(self, capsys):
        class Misspelt:
            name = "misspelt"

            @hookimpl
            def tensorplug_kernels(self):
                return [Kernel("sofmax", "cpu", abs), Kernel("acme.smooth", "cpu", abs)]

        tp.plugins.register(Misspelt())
        try:
            text = printed(capsys, "doctor", status=1).out
            assert "did you mean softmax" in text
            assert "'acme.smooth', which no plugin registers" in text
            assert "1 kernels that nothing uses" in text
        finally:
            tp.plugins.unregister("misspelt")


class TestDevices:
    def test_ready_and_well_known(self, capsys):
        rows = {row["device"]: row for row in as_json(capsys, "devices")}
        assert rows["cpu"]["state"] == "ready"
        assert rows["cpu"]["count"] == 1
        assert "float64" in rows["cpu"]["capabilities"]
        assert "pip install" in rows["cuda"]["state"]

    @pytest.mark.usefixtures("absent_device")
    def test_absent(self, capsys):
        rows = {row["device"]: row for row in as_json(capsys, "devices")}
        assert rows["absent"]["state"] == "no driver; install one"
        assert rows["absent"]["count"] == 0
        assert "no driver; install one" in printed(capsys, "devices").out


class TestExplain:
    def test_winner(self, capsys):
        choice = as_json(capsys, "explain", "mul", "--dtype", "float64")
        assert choice["way"] == "kernel"
        winner = tp.explain("mul", dtype=tp.float64).kernel
        assert choice["kernel"]["plugin"] == winner.plugin
        assert choice["kernel"]["package"].startswith("tensorplug")
        assert choice["kernel"]["source"] == winner.source()

    def test_text_is_that_of_the_function(self, capsys):
        assert printed(capsys, "explain", "exp").out.strip() == str(tp.explain("exp"))

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["mull"], "did you mean mul"),
            (["mul", "--dtype", "float23"], "unknown dtype 'float23'"),
            (["mul", "--device", "warp"], "no plugin provides device 'warp'"),
            (["mul", "--device", "cpu:"], "cpu:"),
        ],
    )
    def test_complaints(self, capsys, arguments, complaint):
        assert complaint in printed(capsys, "explain", *arguments, status=1).err


class TestConformance:
    @pytest.mark.slow
    def test_run(self, capfd, tmp_path):
        report, badge = tmp_path / "report.html", tmp_path / "badge.svg"
        found = as_json(
            capfd, "conformance", "--op", "neg", "--html", str(report), "--badge", str(badge)
        )
        total = found["by_kind"]["total"]
        assert total["failed"] == 0
        assert total["passed"] > 30
        assert any(label.startswith("cpu_numpy ") for label in found["plugins"])
        label = f"tensorplug conformance: {total['passed']} passed, of neg"
        assert ET.parse(badge).getroot().get("aria-label") == label
        assert "No failures" in report.read_text("utf-8")

    def test_failures_are_told(self, tmp_path):
        results = tmp_path / "results.xml"
        results.write_text(
            '<testsuite><testcase name="test_forward[exp-float32]"><failure>off by <b> '
            "one</failure></testcase>"
            '<testcase name="test_meta[exp-float32]"/>'
            '<testcase name="test_views"><skipped message="no views" type="pytest.skip"/></testcase>'
            '<testcase name="test_forward[erf-float16]"><skipped message="8 bits" '
            'type="pytest.xfail"/></testcase></testsuite>'.replace("<b>", "&lt;b&gt;"),
            "utf-8",
        )
        cases = conformance.read_results(results)
        assert [case.outcome for case in cases] == ["failed", "passed", "skipped", "expected"]
        assert (cases[0].kind, cases[0].name) == ("forward", "exp-float32")
        found = conformance.summary("cpu", cases)
        assert found["by_kind"]["forward"] == {
            "passed": 0,
            "failed": 1,
            "expected": 1,
            "skipped": 0,
        }
        page = conformance.page(found, cases)
        assert "1 failures" in page
        assert "off by &lt;b&gt; one" in page
        assert "1 × 8 bits" in page
        assert "the whole suite" in page
        assert ': 1 failed"' in conformance.badge(found)

    def test_unknown_device(self, capsys):
        error = printed(capsys, "conformance", "--device", "warp", status=1).err
        assert "no plugin provides device 'warp'" in error

    @pytest.mark.parametrize("option", ["--every", "--processes"])
    def test_numbers(self, capsys, option):
        with pytest.raises(SystemExit, match="2"):
            main(["conformance", option, "0"])
        assert "expected a number above 0, got 0" in capsys.readouterr().err

    @pytest.mark.slow
    def test_unknown_op(self, capfd):
        error = printed(capfd, "conformance", "--op", "mull", status=1).err
        assert "no op here matches 'mull'; did you mean mul" in error

    def test_no_folder_for_the_report(self, capsys, tmp_path):
        report = str(tmp_path / "nosuch" / "report.html")
        assert (
            "there is no folder" in printed(capsys, "conformance", "--html", report, status=1).err
        )

    @pytest.mark.slow
    def test_settings_of_the_current_folder_have_no_say(self, capfd, tmp_path, monkeypatch):
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nosuch\n", "utf-8")
        monkeypatch.chdir(tmp_path)
        assert as_json(capfd, "conformance", "--op", "neg", "--every", "20")["device"] == "cpu"


class TestBench:
    def test_rows(self, capsys):
        rows = as_json(capsys, "bench", "--sizes", "2")
        assert {row["size"] for row in rows} == {2}
        assert all(row["seconds"] > 0 and row["cpu"] > 0 for row in rows)

    def test_size(self, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(["bench", "--sizes", "0"])
        assert "expected a number above 0, got 0" in capsys.readouterr().err


def test_columns_line_up(capsys):
    output.table(("name", "number"), [("a", 7), ("longer", 1234)])
    assert capsys.readouterr().out == "  name    number\n  a            7\n  longer    1234\n\n"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    for name in ("doctor", "devices", "explain", "coverage", "new-backend", "new-extension"):
        assert name in text
    for name in ("conformance", "bench"):
        assert name in text


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"tensorplug {tp.__version__}, plugin API v1\n"


def test_unknown_command():
    with pytest.raises(SystemExit, match="2"):
        main(["nosuch"])
