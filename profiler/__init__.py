"""The profiler: which kernels ran, on which device, from which plugin, for how long.

``tp.profiler`` and ``tp.autograd.profiler`` are this package.
"""

from __future__ import annotations

from .events import EventList, FunctionEvent, FunctionEventAvg
from .profile import (
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
