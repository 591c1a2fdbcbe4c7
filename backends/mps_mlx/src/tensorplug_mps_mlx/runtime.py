"""The runtime of "mps": lazily evaluated arrays, and when they are evaluated."""

from __future__ import annotations

import platform
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from tensorplug.plugin import ArrayApiRuntime, DeviceRuntime, DType

from . import _mlx, memory, places
from ._mlx import mx

#: So many results may wait for their evaluation. A graph that nobody asks anything of would grow for ever.
MOST_PENDING = 4096

#: MLX counts the elements of a dimension in 32 bits, and ends the program where they do not suffice.
LARGEST = (1 << 31) - 1


class MpsRuntime(ArrayApiRuntime):
    """Memory of MLX's arrays, which are computed when somebody asks for their elements.

    A kernel adds to MLX's graph and returns. The graph is evaluated by what reads elements (``item``, copies
    to the host), by a step of an optimizer, by ``synchronize``, and when it has grown long.
    """

    autocast_dtype = "float16"
    namespace: Mapping[str, Any] = memory.NAMES
    quiet = DeviceRuntime.quiet

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._pending: list[weakref.ref[Any]] = []
        self._lock = threading.Lock()

    def device_name(self, index: int) -> str:
        """Return the chip's name; on a machine without Metal say what stands in for it."""
        name = mx.device_info(_mlx.DEVICE).get("device_name", platform.processor())
        return str(name) if mx.metal.is_available() else f"MLX on the CPU, for tests ({name})"

    def properties(self, index: int) -> Mapping[str, Any]:
        """Return what MLX knows of the device."""
        facts = dict(mx.device_info(_mlx.DEVICE))
        total = facts.get("memory_size", mx.get_memory_limit())
        return {**facts, "name": self.device_name(index), "total_memory": total}

    # --- laziness ---

    def new(self, array: Any) -> Any:
        """Return one of MLX's arrays as the whole of a store of its own, to be evaluated in time."""
        made = super().new(array)
        self._pending.append(weakref.ref(made.store))
        if len(self._pending) > MOST_PENDING:
            self.flush()
        return made

    def flush(self) -> None:
        """Queue the evaluation of everything that somebody still holds."""
        with self._lock:
            pending, self._pending = self._pending, []
        stores = [reference() for reference in pending]
        arrays = [store.array for store in stores if store is not None]
        if arrays:
            _mlx.begin(arrays)

    def synchronize(self, index: int) -> None:
        """Evaluate everything, and wait for it."""
        self.flush()
        _mlx.synchronize()

    # --- elements ---

    def read(self, array: Any) -> Any:
        """Return the elements as an array of MLX; a view by its strides, without a copy."""
        _mlx.thread.ready  # noqa: B018 (what is read is computed with next, on the stream of all threads)
        store = array.store
        held = store.array
        if array.whole:
            return held if held.shape == array.shape else mx.reshape(held, array.shape)
        shape = array.shape
        if 0 in shape:
            return mx.zeros(shape, dtype=self.natives[array.dtype])
        if max(shape, default=0) > LARGEST:
            raise RuntimeError(
                f"mps: MLX's arrays have at most {LARGEST} elements a dimension, got {shape}"
            )
        if array.dtype is not store.dtype:
            held = mx.view(mx.reshape(held, (-1,)), self.natives[array.dtype])
        return mx.as_strided(mx.contiguous(held), shape, array.strides, array.offset)

    def write(self, target: Any, source: Any) -> None:
        """Put elements into a store, which then holds another array; every view of it sees that."""
        store = target.store
        if target.whole:
            store.array = source
        elif 0 not in target.shape:
            held = store.array
            if target.dtype is store.dtype:
                store.array = places.put(held, target, source)
            else:
                flat = mx.view(mx.reshape(held, (-1,)), self.natives[target.dtype])
                flat = places.put(flat, target, source)
                store.array = mx.reshape(mx.view(flat, held.dtype), held.shape)
        self._pending.append(weakref.ref(store))
        if len(self._pending) > MOST_PENDING:
            self.flush()

    def empty(self, shape: Any, dtype: DType, index: int) -> Any:
        """Return an array of zeros."""
        _mlx.thread.ready  # noqa: B018
        return super().empty(shape, dtype, index)

    # --- memory ---

    def memory_stats(self, index: int) -> Mapping[str, int]:
        """Return MLX's own figures."""
        return memory.stats()

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak start again from the present."""
        mx.reset_peak_memory()

    def empty_cache(self) -> None:
        """Give back what MLX keeps for coming arrays."""
        mx.clear_cache()
