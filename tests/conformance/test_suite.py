"""The conformance suite finds faults: each is planted into a device, and reported under its op."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = pytest.mark.xdist_group("conformance")


@dataclass
class Run:
    """What one run of the suite said: its cases by outcome, and its last lines."""

    text: str
    cases: dict[str, set[str]] = field(default_factory=dict)

    def of(self, outcome: str, op: str) -> set[str]:
        """The variants with an outcome for an op, with the dtype."""
        found = set()
        for case in self.cases.get(outcome, ()):
            variant, _, rest = case.partition("/")
            name, _, dtype = rest.partition("-")
            if name == op:
                found.add(f"{variant}/{dtype}" if dtype else variant)
        return found


def run(*options: str, faults: str = "", expected: str = "") -> Run:
    environment = {
        **os.environ,
        "MIRROR_FAULTS": faults,
        "MIRROR_EXPECTED": expected,
        "PYTHONPATH": str(HERE),
        "PYTEST_ADDOPTS": "",
    }
    command = [sys.executable, "-m", "pytest", "-p", "mirror", "-p", "no:cacheprovider", "-v"]
    command += ["-rs", "--tb=line", "--device", "mirror", *options]
    command += ["--pyargs", "tensorplug.testing.conformance"]
    done = subprocess.run(
        command, env=environment, cwd=HERE, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    result = Run(done.stdout)
    for line in done.stdout.splitlines():
        match = re.match(r"\S+::test_(\w+)(?:\[(\S+)\])? (PASSED|FAILED|XFAIL|SKIPPED)", line)
        if match:
            case = match[1] + (f"/{match[2]}" if match[2] else "")
            result.cases.setdefault(match[3], set()).add(case)
    return result


@pytest.fixture(scope="module")
def faulty() -> Iterator[Run]:
    """A run over ops that have a fault each, and one that has none."""
    faults = (
        "wrong_value,wrong_shape_if_empty,pointwise_wrong_shape_if_empty,writes_to_its_input,"
        "returns_its_input,returns_one_memory,wrong_dtype,ignores_out,ignores_the_seed,"
        "holds_on"
    )
    ops = "exp,flip,sin,cumsum,floor,prod,amax,atan2,philox_bits,rand,cos,sqrt,tan"
    return run("--op", ops, faults=faults)


@pytest.mark.slow
def test_a_wrong_value_in_one_dtype(faulty: Run) -> None:
    failed = faulty.of("FAILED", "exp")
    assert "forward/float64" in failed
    assert "forward/float32" in faulty.of("PASSED", "exp")
    assert {case.partition("/")[2] for case in failed} <= {"float64", "int64"}


def test_a_wrong_shape_for_an_empty_input(faulty: Run) -> None:
    assert {"forward/float32", "forward/int64"} <= faulty.of("FAILED", "flip")
    assert {"forward/float32", "forward/float64"} <= faulty.of("FAILED", "sin")


@pytest.mark.slow
def test_a_kernel_that_writes_to_its_input(faulty: Run) -> None:
    assert {"forward/float32", "forward/int64"} <= faulty.of("FAILED", "cumsum")
    assert "cumsum Sample" in faulty.text
    assert "wrote to its inputs" in faulty.text


def test_a_kernel_that_returns_its_inputs_memory(faulty: Run) -> None:
    assert {"memory/int32", "memory/int64", "memory/uint8"} <= faulty.of("FAILED", "floor")
    assert "memory/float32" in faulty.of("PASSED", "floor")
    assert "forward/int64" in faulty.of("PASSED", "floor")


def test_a_kernel_that_returns_the_same_memory_twice(faulty: Run) -> None:
    assert "memory/float32" in faulty.of("FAILED", "prod")


def test_a_kernel_that_keeps_what_it_returns(faulty: Run) -> None:
    assert "memory/float32" in faulty.of("FAILED", "tan")
    assert "holds on to 1 of its results" in faulty.text
    assert "forward/float32" in faulty.of("PASSED", "tan")


def test_a_wrong_dtype(faulty: Run) -> None:
    assert "forward/float32" in faulty.of("FAILED", "amax")
    assert "forward/float64" in faulty.of("PASSED", "amax")
    assert "returned dtype float64, but the op's declaration says float32" in faulty.text


def test_a_kernel_that_ignores_out(faulty: Run) -> None:
    assert {"out/float32", "inplace/float32"} <= faulty.of("FAILED", "atan2")
    assert "forward/float32" in faulty.of("PASSED", "atan2")


def test_a_random_stream_that_ignores_the_seed(faulty: Run) -> None:
    assert "random_bits" in faulty.of("FAILED", "philox_bits")
    assert "random" in faulty.of("FAILED", "rand")
    assert "rand" in faulty.text


def test_ops_without_a_fault_pass(faulty: Run) -> None:
    for op in ("cos", "sqrt"):
        assert not faulty.of("FAILED", op)
        assert "forward/float32" in faulty.of("PASSED", op)


def test_the_summary_counts(faulty: Run) -> None:
    line = re.search(r"(\d+) ops, (\d+) cases \((.*)\), (\d+) comparisons in \d+ s", faulty.text)
    assert line is not None
    assert int(line[1]) == 13
    assert int(line[2]) == sum(len(faulty.cases[outcome]) for outcome in ("PASSED", "FAILED"))
    assert f"{len(faulty.cases['FAILED'])} failed" in line[3]
    assert int(line[4]) > 500


@pytest.mark.slow
def test_views_that_are_copies() -> None:
    found = run("-k", "test_device", faults="view_is_a_copy")
    assert "views/float32" in found.cases["FAILED"]
    assert {"copies/float32", "synchronize"} <= found.cases["PASSED"]
    assert {"dlpack/float32", "host_memory"} <= found.cases["SKIPPED"]
    assert "the device declares no dlpack" in found.text


@pytest.mark.slow
def test_memory_in_another_order_than_strides_tell() -> None:
    found = run("-k", "test_layouts", "--op", "neg,linalg_inv", faults="takes_memory_for_fortran_s")
    assert found.cases["FAILED"] == {"layouts/neg-float32"}
    assert found.cases["PASSED"] == {"layouts/linalg_inv-float32"}


@pytest.mark.slow
def test_expected_failures() -> None:
    lines = [
        "forward/exp-float64=planted",
        "inplace/exp-*64=planted",  # in place, float64 fails and complex64 does not
        "out/exp-float32=passes all the same",
        "forward/nosuch-*=names nothing",
    ]
    expected = "\n".join(lines)
    found = run("--op", "exp", faults="wrong_value", expected=expected)
    assert "forward/exp-float64" in found.cases["XFAIL"]
    assert "out/exp-float32" in found.cases["FAILED"]
    assert "inplace/exp-complex64" in found.cases["FAILED"]
    assert "XPASS(strict)" in found.text


@pytest.mark.slow
def test_a_device_without_faults_passes_with_primitives_alone() -> None:
    """What is composite here, with a kernel of its own on the CPU, is right without it, too."""
    ops = (
        "exp2,log2,log10,tan,asin,acos,atan,sinh,cosh,asinh,acosh,atanh,ceil,trunc,nextafter,"
        "softmax,log_softmax,logsumexp,tril,triu,stack,scatter_add,fft_rfft,fft_irfft,fft_rfftn,"
        "fft_irfftn,fft_hfft,fft_ihfft"
    )
    found = run("--op", ops, "-k", "forward or meta or errors or out", faults="bare")
    assert not found.cases.get("FAILED"), found.text[-3000:]
    assert len(found.cases["PASSED"]) > 500


@pytest.mark.slow
def test_a_device_without_complex_numbers() -> None:
    found = run("--op", "linalg_eig,complex,fft_ihfft2,fft_irfft,exp,*linear", faults="real")
    assert not found.cases.get("FAILED"), found.text[-3000:]
    assert {"forward/float32", "out/float32"} <= found.of("SKIPPED", "linalg_eig")
    assert {"forward/float32", "out/float32"} <= found.of("PASSED", "exp")


@pytest.fixture
def broken_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of somebody else's whose extension cannot be imported."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(
        "[tensorplug.v1]\nextension.broken = nosuch:it\n", "utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.slow
@pytest.mark.usefixtures("broken_extension")
def test_somebody_elses_broken_plugin_is_a_warning() -> None:
    done = pytest_on_cpu("--op", "neg", "--every", "9", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert "plugin extension.broken (broken 1.0) is not used" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        (["--device", "warp"], 4, "--device: no plugin provides device 'warp'"),
        (["--every", "0"], 4, "--every: expected 1 or more, got 0"),
        (["--op", "nosuch"], 5, "--op: no op that the suite has samples of matches 'nosuch'"),
    ],
)
def test_options_that_fit_nothing(options: list[str], status: int, complaint: str) -> None:
    done = pytest_on_cpu(*options)
    assert done.returncode == status
    assert complaint in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def pytest_on_cpu(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        f"--confcutdir={HERE}",
        *options,
    ]
    return subprocess.run(
        [*command, "--pyargs", "tensorplug.testing.conformance"],
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
