"""MLX, and the stream on which everything is queued."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import OutOfMemoryError

# MLX's own annotations leave out a part of it, so it counts as untyped, installed or not.
mx: Any = importlib.import_module("mlx.core")

#: The device: Metal's where there is one. MLX's CPU device stands in for it in tests alone.
DEVICE = mx.Device(mx.gpu if mx.metal.is_available() else mx.cpu)

# Graphs built in one thread are evaluated in others, so that all share one stream, one evaluation at a time.
STREAM = mx.new_thread_unsafe_stream(DEVICE)
_evaluating = threading.RLock()


class _Thread(threading.local):
    """Whether a thread uses the stream: made when a thread first asks."""

    def __init__(self) -> None:
        mx.set_default_device(DEVICE)
        mx.set_default_stream(STREAM)
        self.ready = True


thread = _Thread()


def evaluate(*arrays: Any) -> None:
    """Compute arrays; return when they are there."""
    with _evaluating:
        try:
            mx.eval(*arrays)
        except RuntimeError as error:
            if "allocate" not in str(error):
                raise
            raise OutOfMemoryError(f"mps: {error}") from error


def begin(*arrays: Any) -> None:
    """Queue what computes arrays, and return."""
    with _evaluating:
        mx.async_eval(*arrays)


def synchronize() -> None:
    """Wait for what is queued."""
    with _evaluating:
        mx.synchronize(STREAM)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Return an array's elements; without a copy where the memory is shared."""
    if array.dtype == mx.bfloat16:  # NumPy's protocol for memory has no such dtype
        return to_numpy(mx.view(array, mx.uint16)).view(ml_dtypes.bfloat16)
    evaluate(array)
    return np.asarray(array)


def from_numpy(array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """Return a NumPy array's elements as an array of MLX."""
    return mx.array(array, dtype=dtype)
