"""The second memory: blocks of bytes, and arrays that show parts of them as numbers."""

from __future__ import annotations

import array
import ctypes
import math
import struct
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

# The dtypes of the vault, and how Python's struct module calls the numbers that they consist of. It
# knows no bfloat16, so neither does the vault.
CODES = {
    "bool": "B", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "float16": "e", "float32": "f", "float64": "d", "complex64": "f", "complex128": "d",
}  # fmt: skip
DTYPES = tuple(dtype_named(name) for name in CODES)
REALS = tuple(dtype for dtype in DTYPES if not dtype.is_complex)
FLOATS = tuple(dtype for dtype in DTYPES if dtype.is_floating_point)
BOOL = dtype_named("bool")
INT64 = dtype_named("int64")
_UNIT = 16  # bytes; a block holds a whole number of elements of whatever dtype

allocated = {"allocated": 0, "peak_allocated": 0, "stores": 0}


class Store:
    """A block of the memory; it counts itself in and out."""

    __slots__ = ("__weakref__", "_cells", "memory", "size")

    def __init__(self, memory: bytearray) -> None:
        self.size = len(memory)
        memory.extend(bytes(-len(memory) % _UNIT if memory else _UNIT))
        self.memory = memory
        self._cells: dict[DType, Any] = {}
        allocated["allocated"] += self.size
        allocated["stores"] += 1
        allocated["peak_allocated"] = max(allocated["peak_allocated"], allocated["allocated"])
        weakref.finalize(self, _free, self.size)

    def cells(self, dtype: DType) -> Any:
        """Return the block as a mutable sequence of numbers of a dtype."""
        found = self._cells.get(dtype)
        if found is None:
            code = CODES[dtype.name]
            found = _Halves(self.memory) if code == "e" else memoryview(self.memory).cast(code)
            self._cells[dtype] = found = _Pairs(found) if dtype.is_complex else found
        return found

    def address(self) -> int:
        """Return where the block lies in the machine's memory."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


def _free(size: int) -> None:
    allocated["allocated"] -= size
    allocated["stores"] -= 1


class _Halves:
    """Bytes as numbers of two bytes, for which memoryview has no name."""

    def __init__(self, memory: bytearray) -> None:
        self.memory = memory

    def __getitem__(self, place: int) -> float:
        return struct.unpack_from("e", self.memory, 2 * place)[0]  # type: ignore[no-any-return]

    def __setitem__(self, place: int, value: float) -> None:
        self.memory[2 * place : 2 * place + 2] = half(value)


class _Pairs:
    """Real and imaginary parts, side by side, as complex numbers."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells

    def __getitem__(self, place: int) -> complex:
        return complex(self.cells[2 * place], self.cells[2 * place + 1])

    def __setitem__(self, place: int, value: complex) -> None:
        value = complex(value)
        self.cells[2 * place], self.cells[2 * place + 1] = value.real, value.imag


def half(value: float) -> bytes:
    """Return the two bytes of a number; too large is infinite."""
    try:
        return struct.pack("e", value)
    except OverflowError:
        return struct.pack("e", math.copysign(math.inf, value))


def packed(dtype: DType, values: Iterable[Any]) -> bytearray:
    """Return numbers as bytes."""
    values = converted(dtype, values)
    code = CODES[dtype.name]
    if dtype.is_complex:
        values = [part for v in map(complex, values) for part in (v.real, v.imag)]
    if code == "e":
        return bytearray(b"".join(map(half, values)))
    return bytearray(array.array(code, values).tobytes())


def converted(dtype: DType, values: Iterable[Any]) -> Iterable[Any]:
    """Return numbers as they go into a store: truth values as 0 and 1, integers wrapped around."""
    if dtype.is_floating_point or dtype.is_complex:
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

    @property
    def cells(self) -> Any:
        """The numbers of the store."""
        return self.store.cells(self.dtype)

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
        cells = self.cells
        found = [cells[place] for place in self.places(shape)]
        return [value != 0 for value in found] if self.dtype is BOOL else found

    def write(self, values: Iterable[Any]) -> None:
        """Overwrite the elements, row by row."""
        cells = self.cells
        for place, value in zip(self.places(), converted(self.dtype, values), strict=True):
            cells[place] = value


def new(values: Iterable[Any], shape: Shape, dtype: DType) -> VaultArray:
    """Return a new array over a store of its own."""
    return VaultArray(Store(packed(dtype, values)), shape, contiguous_strides(shape), 0, dtype)


def layout_of(array: VaultArray) -> Layout:
    """Return how an array lies in its store."""
    return Layout(array.shape, array.strides, array.offset, array.dtype)


def relaid(array: VaultArray, layout: Layout) -> VaultArray:
    """Return an array over the same store.

    Raises
    ------
    RuntimeError
        If it would reach beyond the store.
    """
    shape, strides, size = layout.shape, layout.strides, layout.dtype.itemsize
    last = layout.offset + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    if 0 not in shape and (last + 1) * size > array.store.size:
        raise RuntimeError(
            f"sizes {list(shape)}, strides {list(strides)}, storage offset {layout.offset}, and itemsize "
            f"{size} requiring a storage size of {(last + 1) * size} are out of bounds for storage of "
            f"size {array.store.size}"
        )
    return VaultArray(array.store, shape, strides, layout.offset, layout.dtype)


def common_shape(*arrays: VaultArray) -> Shape:
    """Return the shape of arrays broadcast against each other."""
    return broadcast_shapes(*[array.shape for array in arrays])
