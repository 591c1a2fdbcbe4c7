"""What torch has for a device type and a runtime need not: names that programs import in case."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.errors import OutOfMemoryError

from . import _streams

if TYPE_CHECKING:
    from ._devices import DeviceModule

_CLASSES = ("CUDAGraph", "CUDAPluggableAllocator", "Event", "ExternalStream", "MemPool", "Stream")
_FUNCTIONS = (
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "clock_rate",
    "cudart",
    "current_blas_handle",
    "current_stream",
    "default_stream",
    "device_memory_used",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "graph",
    "get_stream_from_external",
    "graph_pool_handle",
    "host_memory_stats",
    "ipc_collect",
    "list_gpu_processes",
    "make_graphed_callables",
    "mem_get_info",
    "memory_snapshot",
    "memory_summary",
    "memory_usage",
    "power_draw",
    "set_per_process_memory_fraction",
    "set_stream",
    "temperature",
    "use_mem_pool",
    "utilization",
)


#: Names of before, or of rarer use, that other members stand for.
_SAME = {
    "max_memory_cached": "max_memory_reserved",
    "memory_cached": "memory_reserved",
    "reset_max_memory_allocated": "reset_peak_memory_stats",
    "reset_max_memory_cached": "reset_peak_memory_stats",
}

_OF_HOST = {
    "Event": _streams.Event,
    "Stream": _streams.HostStream,
    "current_stream": lambda device=None: _streams.HostStream(),
    "default_stream": lambda device=None: _streams.HostStream(),
    "set_stream": lambda stream: None,
}


class StreamContext(OwnContext):
    """Makes a stream the current one within a ``with`` block; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        if stream is not None and not hasattr(stream, "__enter__"):
            raise TypeError(f"expected a stream or None, got {stream!r}")
        self.stream = stream

    def _steps(self) -> tuple[Steps, Steps]:
        if self.stream is None:
            return (), ()
        return (self.stream.__enter__,), (partial(self.stream.__exit__, None, None, None),)


def find_member(module: DeviceModule, name: str) -> Any:
    """Return what stands for a member that the device's plugin does not bring, or None.

    Classes and functions say at the call which plugin is missing, or that it has nothing of the kind.
    """
    if name in ("StreamContext", "stream"):
        return StreamContext
    if name in ("memory", "random"):
        return module  # torch sorts its functions into files
    if name == "default_generators":
        return tuple(module._generators())
    if name == "OutOfMemoryError":
        return OutOfMemoryError
    if module._type == _streams.HOST and name in _OF_HOST:
        return _OF_HOST[name]
    if name == "is_current_stream_capturing":
        return lambda: False
    if name in _SAME:
        return getattr(module, _SAME[name])
    if name in ("get_arch_list", "get_gencode_flags"):
        return (
            [].copy if name == "get_arch_list" else str
        )  # the sources of kernels are a plugin's own
    if name in _CLASSES:
        return _refusing_class(module, name)
    return _refusal(module, name) if name in _FUNCTIONS else None


def member_names() -> set[str]:
    """Return the names that :func:`find_member` knows."""
    return {
        *_CLASSES,
        *_FUNCTIONS,
        *_SAME,
        *(
            "OutOfMemoryError",
            "StreamContext",
            "default_generators",
            "get_arch_list",
            "get_gencode_flags",
            "is_current_stream_capturing",
            "memory",
            "random",
        ),
        "stream",
    }


def _refusal(module: DeviceModule, name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        module._runtime()  # says what to install
        raise NotImplementedError(
            f"{module.__name__}.{name}: the plugin for device type {module._type!r} has none"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = module.__name__
    return refuse


def _refusing_class(module: DeviceModule, name: str) -> type:
    refuse = _refusal(module, name)
    members = {
        "__module__": module.__name__,
        "__doc__": f"Not there until a plugin for {module._type} brings it.",
        "__new__": refuse,
    }
    return type(name, (), members)
