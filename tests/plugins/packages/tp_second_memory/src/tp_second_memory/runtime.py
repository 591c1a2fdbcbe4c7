"""What the vault supplies beside kernels."""

from __future__ import annotations

import os
from typing import Any

from tensorplug.plugin import DeviceRuntime, DType, Number, Shape

from .host import from_host, to_host
from .memory import DTYPES, VaultArray, allocated, new


class VaultRuntime(DeviceRuntime):
    """One device, whose memory is Python's."""

    type = "vault"
    array_type = VaultArray
    dtypes = DTYPES
    capabilities = frozenset({"float64", "float16", "complex", "views", "in_place"})

    def unavailable_reason(self) -> str | None:
        """Return why the vault is shut, for tests of that case."""
        if "VAULT_SHUT" in os.environ:
            return "the vault is shut; unset VAULT_SHUT to open it"
        return None

    def device_name(self, index: int) -> str:
        """Return a name for people."""
        return "a vault of Python numbers"

    def dtype(self, array: VaultArray) -> DType:
        """Return the dtype of `array`."""
        return array.dtype

    def strides(self, array: VaultArray) -> Shape:
        """Return the strides of `array` in elements."""
        return array.strides

    def storage_offset(self, array: VaultArray) -> int:
        """Return how many elements of the store lie before `array`."""
        return array.offset

    def data_pointer(self, array: VaultArray) -> int:
        """Return where the first element is."""
        return array.store.address() + array.offset * array.dtype.itemsize

    def empty(self, shape: Shape, dtype: DType, index: int) -> VaultArray:
        """Return a new array of zeros."""
        count = 1
        for size in shape:
            count *= size
        return new([0] * count, shape, dtype)

    def scalar(self, value: Number, dtype: DType, index: int) -> VaultArray:
        """Return a 0-d array."""
        return new([value], (), dtype)

    def copy_into(self, target: VaultArray, source: VaultArray) -> None:
        """Copy the elements of `source` to those of `target`; they may overlap."""
        target.write(source.values(target.shape))

    def from_host(self, array: Any, dtype: DType, index: int) -> VaultArray:
        """Carry the contents of a NumPy array in."""
        return from_host(array)

    def to_host(self, array: VaultArray) -> Any:
        """Carry the contents out into a NumPy array."""
        return to_host(array)

    def memory_stats(self, index: int) -> dict[str, int]:
        """Return bytes and stores in use."""
        return dict(allocated)

    def reset_peak_memory_stats(self, index: int) -> None:
        """Make the peak start again from the present."""
        allocated["peak_allocated"] = allocated["allocated"]
