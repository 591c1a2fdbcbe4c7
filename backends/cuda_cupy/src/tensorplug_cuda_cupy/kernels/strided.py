"""Views that CuPy has not, or of which it forgets the owner: arrays over the same memory by arithmetic."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import KernelTable, Layout, Shape, view_kernels

from .._cupy import cp
from ..dtypes import DTYPES, NATIVES

_OURS = ("as_strided", "unfold", "diagonal", "view_as_real", "view_as_complex", "view_dtype")


def build(table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    all_views = KernelTable(table.device)
    view_kernels(all_views, layout_of, relaid)
    made = {kernel.op: kernel.function for kernel in all_views}
    for op in _OURS:
        table.add(op, made[op], priority=1)

    def as_strided(
        input: Any, size: Shape, stride: Shape, storage_offset: int, layout: Any = None
    ) -> Any:
        _, available = storage(input)
        last = storage_offset + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])
        if math.prod(size) and (storage_offset < 0 or (last + 1) * input.itemsize > available):
            raise RuntimeError(
                f"as_strided(): sizes {list(size)}, strides {list(stride)}, storage offset "
                f"{storage_offset}, and itemsize {input.itemsize} requiring a storage size of "
                f"{(last + 1) * input.itemsize} are out of bounds for storage of size {available}"
            )
        return made["as_strided"](input, size, stride, storage_offset, layout)

    table.add("as_strided", as_strided, priority=2)


def storage(array: Any) -> tuple[Any, int]:
    """Return the memory that an array lies in, and how many bytes of it are in use.

    The pool hands out more than it is asked for; what an array over this memory says is exact.
    """
    root = array if array.base is None else array.base
    memory = root.data.mem
    if isinstance(memory, cp.cuda.UnownedMemory):
        return memory, memory.size
    steps = zip(root.shape, root.strides, strict=True)
    reach = sum([(n - 1) * step for n, step in steps]) + root.itemsize if root.size else 0
    size = root.data.ptr - memory.ptr + reach
    return cp.cuda.UnownedMemory(memory.ptr, size, root, root.data.device_id), size


def layout_of(array: Any) -> Layout:
    """Return how an array lies in its memory, in elements."""
    itemsize = array.itemsize
    strides = tuple([stride // itemsize for stride in array.strides])
    return Layout(array.shape, strides, storage_offset(array), DTYPES[array.dtype])


def storage_offset(array: Any) -> int:
    """Return how many elements of its memory lie before an array."""
    return (array.data.ptr - array.data.mem.ptr) // array.itemsize


def relaid(array: Any, layout: Layout) -> Any:
    """Return an array over the same memory with another layout."""
    native = NATIVES[layout.dtype]
    memory, _ = storage(array)
    pointer = cp.cuda.MemoryPointer(memory, layout.offset * native.itemsize)
    strides = tuple([stride * native.itemsize for stride in layout.strides])
    return cp.ndarray(layout.shape, native, pointer, strides)
