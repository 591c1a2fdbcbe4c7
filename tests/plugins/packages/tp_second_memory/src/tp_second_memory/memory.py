"""The second memory: flat stores of machine numbers, and arrays that show parts of them."""

from __future__ import annotations

import array
import math
import weakref
from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import (
    DType,
    Layout,
    Shape,
    broadcast_shapes,
    contiguous_strides,
    dtype_named,
)

# The dtypes of the vault, and the type code of Python's array module for each.
CODES = {
    "bool": "B", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d",
}  # fmt: skip
DTYPES = tuple(dtype_named(name) for name in CODES)
FLOATS = tuple(dtype for dtype in DTYPES if dtype.is_floating_point)
BOOL = dtype_named("bool")
INT64 = dtype_named("int64")

allocated = {"allocated": 0, "peak_allocated": 0, "stores": 0}


class Store:
    """A block of the memory; it counts itself in and out."""

    __slots__ = ("__weakref__", "numbers")

    def __init__(self, dtype: DType, values: Iterable[Any]) -> None:
        self.numbers = array.array(CODES[dtype.name], converted(dtype, values))
        size = len(self.numbers) * self.numbers.itemsize
        allocated["allocated"] += size
        allocated["stores"] += 1
        allocated["peak_allocated"] = max(allocated["peak_allocated"], allocated["allocated"])
        weakref.finalize(self, _free, size)


def _free(size: int) -> None:
    allocated["allocated"] -= size
    allocated["stores"] -= 1


def converted(dtype: DType, values: Iterable[Any]) -> Iterable[Any]:
    """Return numbers as they go into a store: truth values as 0 and 1, integers wrapped around."""
    if dtype.is_floating_point:
        return values
    if dtype is BOOL:
        return [1 if value else 0 for value in values]
    span = 1 << (8 * dtype.itemsize)
    low = -(span >> 1) if dtype.is_signed else 0
    return [(integer(value) - low) % span + low for value in values]


def integer(value: float) -> int:
    """Return a number truncated; nan and the infinities become 0."""
    return int(value) if isinstance(value, int) or math.isfinite(value) else 0


class VaultArray:
    """An array: a store, and where in it the elements are."""

    __slots__ = ("dtype", "offset", "shape", "store", "strides")

    def __init__(
        self, store: Store, shape: Shape, strides: Shape, offset: int, dtype: DType
    ) -> None:
        self.store = store
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype

    def places(self, shape: Shape | None = None) -> list[int]:
        """Return where in the store each element is, row by row, broadcast to a shape."""
        strides = self.strides
        if shape is None:
            shape = self.shape
        elif shape != self.shape:
            # From behind, as broadcasting goes; what is left over in front has size 1.
            pairs = list(zip(self.shape[::-1], shape[::-1], strides[::-1], strict=False))
            own = [stride if size == wanted else 0 for size, wanted, stride in pairs]
            strides = (0,) * (len(shape) - len(own)) + tuple(own[::-1])
        places = [self.offset]
        for size, stride in zip(shape, strides, strict=True):
            places = [place + step * stride for place in places for step in range(size)]
        return places

    def values(self, shape: Shape | None = None) -> list[Any]:
        """Return the elements, row by row, broadcast to a shape."""
        numbers = self.store.numbers
        found = [numbers[place] for place in self.places(shape)]
        return [value != 0 for value in found] if self.dtype is BOOL else found

    def write(self, values: Iterable[Any]) -> None:
        """Overwrite the elements, row by row."""
        numbers = self.store.numbers
        for place, value in zip(self.places(), converted(self.dtype, values), strict=True):
            numbers[place] = value


def new(values: Iterable[Any], shape: Shape, dtype: DType) -> VaultArray:
    """Return a new array over a store of its own."""
    return VaultArray(Store(dtype, values), shape, contiguous_strides(shape), 0, dtype)


def layout_of(array: VaultArray) -> Layout:
    """Return how an array lies in its store."""
    return Layout(array.shape, array.strides, array.offset, array.dtype)


def relaid(array: VaultArray, layout: Layout) -> VaultArray:
    """Return an array over the same store."""
    if layout.dtype is not array.dtype:
        raise TypeError(f"the vault cannot show {array.dtype.name} as {layout.dtype.name}")
    return VaultArray(array.store, layout.shape, layout.strides, layout.offset, layout.dtype)


def common_shape(*arrays: VaultArray) -> Shape:
    """Return the shape of arrays broadcast against each other."""
    return broadcast_shapes(*[array.shape for array in arrays])
