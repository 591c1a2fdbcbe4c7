"""What is missing is said, each thing in its turn; and nothing is said that nobody asked for."""

import functools
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tensorplug.plugin import DeferredKernels
from tensorplug_cuda_cupy._plugin import CudaPlugin
from tensorplug_cuda_cupy.runtime import availability
from tensorplug_cuda_cupy.runtime.runtime import CudaRuntime

SOURCES = Path(__file__).parents[1] / "src"
DRIVER_IS_THERE = availability.missing_driver() is None


def without(monkeypatch, **reasons):
    for name in ("missing_package", "missing_driver", "_broken_package", "_no_device", "_no_nvrtc"):
        monkeypatch.setattr(availability, name, functools.partial(reasons.get, name))


def test_the_first_thing_that_is_missing_is_told(monkeypatch):
    without(monkeypatch, missing_driver="driver", _no_device="device")
    assert availability.unusable() == "driver"
    without(monkeypatch, _no_nvrtc="compiler")
    assert availability.unusable() == "compiler"
    without(monkeypatch)
    assert availability.unusable() is None


def test_no_package(monkeypatch):
    monkeypatch.setattr(availability.importlib.util, "find_spec", lambda name: None)
    reason = availability.missing_package()
    assert "CuPy is not installed" in reason
    assert "pip install '" in reason
    assert "[cuda13]' (or [cuda12]" in reason


def test_a_package_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "CuPy cannot be imported" in availability._broken_package()


@pytest.mark.skipif(DRIVER_IS_THERE, reason="there is a driver on this machine")
def test_no_driver():
    reason = availability.missing_driver()
    assert "no NVIDIA driver was found" in reason
    assert "--gpus all" in reason


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (RuntimeError("cudaErrorInsufficientDriver: too old"), r"driver is too old .* CUDA 13\.2"),
        (RuntimeError("cudaErrorNoDevice: none"), "finds no device"),
        (None, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_no_device(monkeypatch, raised, said):
    def count():
        if raised is not None:
            raise raised
        return 0

    runtime = types.SimpleNamespace(getDeviceCount=count, runtimeGetVersion=lambda: 13020)
    for name in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["cupy.cuda"].runtime = runtime
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(availability._no_device())


def test_a_runtime_without_a_device(monkeypatch):
    without(monkeypatch, missing_driver="there is no driver")
    runtime = CudaRuntime()
    assert runtime.unavailable_reason() == "there is no driver"
    assert runtime.device_count() == 0
    assert runtime.pin(object()) is None
    assert not runtime.is_pinned(object())
    runtime.empty_cache()


def test_no_kernels_without_a_device(monkeypatch):
    without(monkeypatch, missing_driver="there is no driver")
    kernels = CudaPlugin().tensorplug_kernels()
    assert [kernel for kernel in kernels if not isinstance(kernel, DeferredKernels)] == []


PROGRAM = """
import sys, warnings
warnings.simplefilter("error")
import tensorplug as tp
from tensorplug.plugin import DeferredKernels
if not any(found.device == "cuda" for found in tp.plugins.installed()):
    import tensorplug_cuda_cupy
    tp.plugins.register(tensorplug_cuda_cupy.plugin)
tp.nn.Linear(2, 2)
assert not tp.cuda.is_available()
assert tp.cuda.device_count() == 0
tp.cuda.manual_seed(0)
tp.cuda.empty_cache()
assert not tp.zeros(1).is_pinned()
try:
    tp.zeros(1).to("cuda")
except RuntimeError as error:
    print(error)
assert "cupy" not in sys.modules
"""


@pytest.mark.skipif(DRIVER_IS_THERE, reason="there is a driver on this machine")
def test_a_program_on_a_machine_without_a_gpu():
    """It is told what is missing, sees no warning, and does not wait for CuPy to be imported."""
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(SOURCES)!r})\n{PROGRAM}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "device cuda cannot be used: " in done.stdout
    assert "CuPy is not installed" in done.stdout or "no NVIDIA driver" in done.stdout


@pytest.mark.skipif(DRIVER_IS_THERE, reason="there is a driver on this machine")
def test_devices_and_doctor_say_it():
    """In a process of its own: a plugin that tests have registered and taken away again is told apart."""
    program = f"""
import sys
sys.path.append({str(SOURCES)!r})
import tensorplug as tp
from tensorplug.cli import main
if not any(found.device == "cuda" for found in tp.plugins.installed()):
    from tensorplug_cuda_cupy import plugin
    tp.plugins.register(plugin)
assert main(["devices"]) == 0
print("---")
assert main(["doctor"]) == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    devices, doctor = done.stdout.split("---\n")
    assert "CuPy is not installed" in devices or "no NVIDIA driver" in devices
    assert "cuda_cupy" in doctor
