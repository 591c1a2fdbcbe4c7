"""Strided views over an array library that has none: a store, and where in it the elements are.

The Python array API standard knows neither strides nor shared memory, and some libraries that follow
it have arrays that never change. A :class:`StoredArray` has both: it refers to a :class:`Store`, which
holds one of the library's arrays, and a write puts another array into the store, which every view of it
then sees.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType
from tensorplug.core.tensor.shapes import Shape, contiguous_strides

from ..strided import Layout

#: The strides of an array that lies row by row: asked for by each kernel, of few shapes.
row_major = lru_cache(maxsize=4096)(contiguous_strides)


class Store:
    """The memory of a tensor: an array of the library, of any shape, whose elements count row by row."""

    __slots__ = ("__weakref__", "array", "dtype", "size")

    def __init__(self, array: Any, dtype: DType) -> None:
        self.array = array
        self.dtype = dtype
        self.size = math.prod(array.shape)


class StoredArray:
    """What the kernels of an adapted library are given, before they see the library's own array.

    Attributes
    ----------
    store : Store
        The memory.
    shape, strides, offset : tuple of int, tuple of int, int
        Where in it the elements are, counted in elements.
    dtype : DType
        Their type, which need not be the store's.
    whole : bool
        Whether the array shows the whole store, row by row, in the store's dtype.
    """

    __slots__ = ("__weakref__", "dtype", "offset", "shape", "store", "strides", "whole")

    def __init__(
        self,
        store: Store,
        shape: Shape,
        strides: Shape,
        offset: int,
        dtype: DType,
        whole: bool | None = None,
    ) -> None:
        self.store = store
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        if whole is None:
            whole = (
                offset == 0
                and dtype is store.dtype
                and math.prod(shape) == store.size
                and strides == row_major(shape)
            )
        self.whole = whole

    def __repr__(self) -> str:
        return f"StoredArray({self.shape}, {self.dtype.name})"


def stored(array: Any, dtype: DType) -> StoredArray:
    """Return one of the library's arrays as the whole of a store of its own."""
    shape = tuple(array.shape)
    return StoredArray(Store(array, dtype), shape, row_major(shape), 0, dtype, True)


def layout_of(array: StoredArray) -> Layout:
    """Return how an array lies in its store."""
    return Layout(array.shape, array.strides, array.offset, array.dtype)


def relaid(array: StoredArray, layout: Layout) -> StoredArray:
    """Return an array over the same store with another layout.

    Raises
    ------
    RuntimeError
        If it would reach beyond the store.
    """
    store = array.store
    last = layout.offset + sum(
        [(size - 1) * step for size, step in zip(layout.shape, layout.strides, strict=True)]
    )
    needed = (last + 1) * layout.dtype.itemsize
    held = store.size * store.dtype.itemsize
    if 0 not in layout.shape and needed > held:
        raise RuntimeError(
            f"setStorage: sizes {list(layout.shape)}, strides {list(layout.strides)}, storage offset "
            f"{layout.offset}, and itemsize {layout.dtype.itemsize} requiring a storage size of "
            f"{needed} are out of bounds for storage of size {held}"
        )
    return type(array)(store, layout.shape, layout.strides, layout.offset, layout.dtype)


# --- reading --------------------------------------------------------------------------------------


def read(xp: Any, array: StoredArray) -> Any:
    """Return the elements as an array of the library; of a store of the same dtype."""
    held, shape = array.store.array, array.shape
    if array.whole:
        return held if tuple(held.shape) == shape else xp.reshape(held, shape)
    if 0 in shape:
        return xp.zeros(shape, dtype=held.dtype)
    flat = xp.reshape(held, (-1,))
    found = _sliced(xp, flat, shape, array.strides, array.offset)
    if found is None:
        indices = xp.asarray(_places(shape, array.strides, array.offset).reshape(-1))
        found = xp.reshape(xp.take(flat, indices, axis=0), shape)
    return found


def _sliced(xp: Any, flat: Any, shape: Shape, strides: Shape, offset: int) -> Any | None:
    """Return a view's elements by reshaping and slicing, or None where only gathering finds them.

    With the dimensions ordered by stride, each is rows of the one before: the flat array is cut into
    rows as long as the first stride, those into rows as long as the second, and so on.
    """
    order = sorted(
        [d for d in range(len(shape)) if strides[d] and shape[d] > 1], key=lambda d: -strides[d]
    )
    rows = flat[offset:]
    sizes: list[int] = []
    length = rows.shape[0]
    for d in order:
        count, step = shape[d], strides[d]
        if count * step > length:
            # The last row may be cut short: what follows it is read by nobody.
            if length < (count - 1) * step + 1 or sizes:
                return None
            filling = xp.zeros((count * step - length,), dtype=flat.dtype)
            rows = xp.concat([rows, filling])
        rows = xp.reshape(rows[..., : count * step], (*sizes, count, step))
        sizes.append(count)
        length = step
    rows = rows[..., 0]
    # Back into the order of the dimensions; those of stride 0 repeat.
    kept = sorted(order)
    if kept != order:
        rows = xp.permute_dims(rows, tuple([order.index(d) for d in kept]))
    ones = tuple([shape[d] if d in order else 1 for d in range(len(shape))])
    rows = xp.reshape(rows, ones)
    return xp.broadcast_to(rows, shape) if ones != shape else rows


@lru_cache(maxsize=256)
def _places(shape: Shape, strides: Shape, offset: int) -> np.ndarray[Any, Any]:
    """Return where in the store each element is."""
    indices = np.full(shape, offset, np.int64)
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(size, dtype=np.int64) * stride
        indices += steps.reshape([size if n == d else 1 for n in range(len(shape))])
    return indices


# --- writing --------------------------------------------------------------------------------------


def write(xp: Any, target: StoredArray, source: Any) -> None:
    """Put the elements of one of the library's arrays, of the same shape and dtype, into a store."""
    store = target.store
    if target.whole:
        store.array = source
        return
    if 0 in target.shape:
        return
    flat = xp.reshape(store.array, (-1,))
    values = xp.reshape(source, (-1,))
    count = values.shape[0]
    if target.strides == row_major(target.shape):
        parts = [flat[: target.offset], values, flat[target.offset + count :]]
        store.array = xp.concat([part for part in parts if part.shape[0]])
        return
    where, taken = _sources(target.shape, target.strides, target.offset, store.size)
    replaced = xp.take(values, xp.asarray(where), axis=0)
    store.array = xp.where(xp.asarray(taken), replaced, flat)


@lru_cache(maxsize=64)
def _sources(
    shape: Shape, strides: Shape, offset: int, size: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return, for each place of a store, which element is written there, and whether any is."""
    indices = _places(shape, strides, offset).reshape(-1)
    where = np.zeros(size, np.int64)
    taken = np.zeros(size, np.bool_)
    where[indices] = np.arange(indices.size)
    taken[indices] = True
    return where, taken
