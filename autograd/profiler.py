"""The profiler: which kernels ran, on which device, from which plugin, for how long. Torch's older path."""

from __future__ import annotations

from tensorplug.profiler import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    ProfilerAction,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]
