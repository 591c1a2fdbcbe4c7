"""Figures of the card, as ``nvidia-smi`` shows them; they take the package ``nvidia-ml-py``."""

from __future__ import annotations

import importlib
from typing import Any

from .._cupy import cp
from ..runtime.streams import _index


def _handle(device: Any) -> tuple[Any, Any]:
    """Return the library, and a GPU in it.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed.
    RuntimeError
        If the driver does not answer.
    """
    try:
        library: Any = importlib.import_module("pynvml")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported: figures of the card take "
            "pip install nvidia-ml-py"
        ) from error
    # Its numbers are not CUDA's, which CUDA_VISIBLE_DEVICES chooses; the place on the bus is the same.
    place = cp.cuda.runtime.deviceGetPCIBusId(_index(device))
    try:
        library.nvmlInit()
        return library, library.nvmlDeviceGetHandleByPciBusId(place)
    except library.NVMLError as error:
        raise RuntimeError(f"NVIDIA's management library does not know the GPU: {error}") from error


def utilization(device: Any = None) -> int:
    """Return in which percentage of the last moments the GPU ran kernels."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def memory_usage(device: Any = None) -> int:
    """Return in which percentage of the last moments the GPU's memory was read or written."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetUtilizationRates(handle).memory)


def temperature(device: Any = None) -> int:
    """Return the GPU's temperature in degrees Celsius."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))


def power_draw(device: Any = None) -> int:
    """Return the card's power draw in milliwatts."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetPowerUsage(handle))


def clock_rate(device: Any = None) -> int:
    """Return the clock rate of the GPU's multiprocessors in MHz."""
    library, handle = _handle(device)
    return int(library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM))


def list_gpu_processes(device: Any = None) -> str:
    """Return which processes use the GPU, and how much of its memory, as text."""
    library, handle = _handle(device)
    lines = [f"GPU:{_index(device)}"]
    processes = library.nvmlDeviceGetComputeRunningProcesses(handle)
    if not processes:
        lines.append("no processes are running")
    for process in processes:
        size = (process.usedGpuMemory or 0) / (1 << 20)
        lines.append(f"process {process.pid:>10d} uses {size:>12.3f} MB GPU memory")
    return "\n".join(lines)
