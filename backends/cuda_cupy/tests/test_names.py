"""Small modules of ``tp.cuda``: ranges for profilers, figures of the card; over stand-ins."""

import sys
import types

import pytest

import tensorplug_cuda_cupy.torch_api.nvtx as ranges
from tensorplug_cuda_cupy.runtime import streams
from tensorplug_cuda_cupy.torch_api import nvml
from tensorplug_cuda_cupy.torch_api.names import NAMES

# --- ranges -----------------------------------------------------------------------------------------


@pytest.fixture
def noted(monkeypatch):
    calls = []

    def note(name):
        return lambda *arguments: calls.append((name, *arguments)) or 7

    names = ("Mark", "RangePush", "RangePop", "RangeStart", "RangeEnd")
    module = types.SimpleNamespace(**{name: note(name) for name in names})
    monkeypatch.setattr(ranges.importlib, "import_module", lambda name: module)
    return calls


def test_ranges(noted):
    ranges.mark("here")
    assert [ranges.range_push("a"), ranges.range_push("b")] == [0, 1]
    assert [ranges.range_pop(), ranges.range_pop(), ranges.range_pop()] == [1, 0, -1]
    assert ranges.range_push("c") == 0
    ranges.range_pop()
    with ranges.range("step {} of {n}", 3, n=4):
        pass
    ranges.range_end(ranges.range_start("long"))
    assert noted[0] == ("Mark", "here")
    assert noted[-4:] == [
        ("RangePush", "step 3 of 4"), ("RangePop",), ("RangeStart", "long", 0), ("RangeEnd", 7),
    ]  # fmt: skip


def test_a_range_decorates_and_ends_with_an_error(noted):
    @ranges.range("f")
    def fail():
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert noted == [("RangePush", "f"), ("RangePop",)]


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nvtx", None)
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        ranges.mark("here")


def test_cupys_own_ranges():
    pytest.importorskip("cupy", reason="CuPy is not installed: make test-cuda-compile installs it")
    ranges.mark("here")
    with ranges.range("within"):
        ranges.range_end(ranges.range_start("long"))


# --- figures of the card ----------------------------------------------------------------------------


@pytest.fixture
def card(monkeypatch):
    class NVMLError(Exception):
        pass

    rates = types.SimpleNamespace(gpu=63, memory=12)
    library = types.SimpleNamespace(
        NVMLError=NVMLError,
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda place: {"0000:07:00.0": "card"}[place],
        nvmlDeviceGetUtilizationRates=lambda handle: rates,
        nvmlDeviceGetTemperature=lambda handle, sensor: 51 + sensor,
        nvmlDeviceGetPowerUsage=lambda handle: 123456,
        nvmlDeviceGetClockInfo=lambda handle, clock: 1980 + clock,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [],
    )
    runtime = types.SimpleNamespace(
        deviceGetPCIBusId=lambda index: "0000:07:00.0", getDevice=lambda: 0
    )
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(nvml, "cp", cupy)
    monkeypatch.setattr(streams, "cp", cupy)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_figures_of_the_card(card):
    figures = ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")
    assert [NAMES[name]() for name in figures] == [63, 12, 51, 123456, 1981]
    assert nvml.list_gpu_processes("cuda:0") == "GPU:0\nno processes are running"
    process = types.SimpleNamespace(pid=42, usedGpuMemory=3 << 20)
    card.nvmlDeviceGetComputeRunningProcesses = lambda handle: [process]
    assert "42 uses        3.000 MB" in nvml.list_gpu_processes()


def test_figures_without_the_package_or_the_driver(card, monkeypatch):
    def fail():
        raise card.NVMLError("driver not loaded")

    card.nvmlInit = fail
    with pytest.raises(RuntimeError, match="driver not loaded"):
        nvml.temperature()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ModuleNotFoundError, match="pip install nvidia-ml-py"):
        nvml.temperature()
