"""Small functions of ``tp.cuda`` that programs written for torch ask for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tensorplug.plugin import generator_of

from .._cupy import cp
from ..runtime import graphs, memory_history, pools, streams, sync_debug
from . import graphed_callables, nvml, nvtx

#: The architectures that the sources are compiled for in tests; on a device, for its own.
_TESTED = ("sm_80", "sm_90")


def device_of(tensor: Any) -> AbstractContextManager[Any]:
    """Return a context in which the GPU of a tensor, if it is on one, is the current one."""
    if getattr(tensor, "is_cuda", False):
        return cp.cuda.Device(tensor.device.index)
    return nullcontext()


def is_current_stream_capturing() -> bool:
    """Return whether what this thread queues is captured in a graph."""
    return bool(cp.cuda.get_current_stream().is_capturing())


def current_blas_handle() -> int:
    """Return the address of cuBLAS's handle of the current device."""
    return int(cp.cuda.device.get_cublas_handle())


def is_tf32_supported() -> bool:
    """Return whether the current device has TensorFloat-32."""
    facts = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    return int(facts["major"]) >= 8


def get_arch_list() -> list[str]:
    """Return architectures that the sources are known to compile for; each device compiles for its own."""
    return list(_TESTED)


def ipc_collect() -> None:
    """Do nothing: no memory of a GPU is shared with other processes."""


class _Generators:
    """``default_generators``: one per GPU."""

    def __len__(self) -> int:
        return int(cp.cuda.runtime.getDeviceCount())

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} GPUs, got index {index}")
        return generator_of(f"cuda:{index % len(self)}")


NAMES: Mapping[str, Any] = {
    "CUDAGraph": graphs.CUDAGraph,
    "Event": streams.Event,
    "ExternalStream": streams.ExternalStream,
    "MemPool": pools.MemPool,
    "Stream": streams.Stream,
    "StreamContext": streams.stream,
    "clock_rate": nvml.clock_rate,
    "current_blas_handle": current_blas_handle,
    "current_stream": streams.current_stream,
    "default_generators": _Generators(),
    "default_stream": streams.default_stream,
    "device_of": device_of,
    "get_arch_list": get_arch_list,
    "get_stream_from_external": streams.get_stream_from_external,
    "graph": graphs.graph,
    "graph_pool_handle": graphs.graph_pool_handle,
    "get_sync_debug_mode": sync_debug.mode,
    "has_half": True,
    "ipc_collect": ipc_collect,
    "is_current_stream_capturing": is_current_stream_capturing,
    "is_tf32_supported": is_tf32_supported,
    "list_gpu_processes": nvml.list_gpu_processes,
    "make_graphed_callables": graphed_callables.make_graphed_callables,
    "memory_usage": nvml.memory_usage,
    "nvtx": nvtx,
    "power_draw": nvml.power_draw,
    "set_stream": streams.set_stream,
    "set_sync_debug_mode": sync_debug.set_mode,
    "stream": streams.stream,
    "_dump_snapshot": memory_history.dump_snapshot,
    "_record_memory_history": memory_history.record_memory_history,
    "_snapshot": memory_history.snapshot,
    "memory_snapshot": memory_history.memory_snapshot,
    "temperature": nvml.temperature,
    "use_mem_pool": pools.use_mem_pool,
    "utilization": nvml.utilization,
}
