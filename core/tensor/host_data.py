"""Tensors' contents from Python data: numbers, nested sequences, arrays, and what can be made one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..device.dtypes import (
    ALL_DTYPES,
    BOOL,
    COMPLEX,
    DType,
    default_complex,
    get_default_dtype,
    iinfo,
    promote_types,
)
from ..dispatch.failed_calls import out_of_memory
from .base import TensorBase
from .host import NATIVE, Array, converted, dtype_of, host_array

_LEAVES = {bool: 0, int: 1, float: 2, complex: 3}
_RANKED = (bool, int, float, complex)


def from_data(data: Any, dtype: DType | None, name: str) -> tuple[Array, DType]:
    """Return new memory with the contents of `data`, and its dtype.

    Parameters
    ----------
    data : number, array or nested sequence
        What ``tp.tensor`` takes, but for tensors themselves.
    dtype : DType or None
        The dtype to convert to; None to infer it as torch does.
    name : str
        The function, for messages.
    """
    key = type(data)
    if key in _LEAVES:
        chosen = dtype or _number_dtype({key})
        return _fill([data], (), chosen, name), chosen
    if isinstance(data, (list, tuple)):
        flat = _flatten(data, name)
        if flat is not None:
            items, shape, types = flat
            chosen = dtype or _number_dtype(types)
            return _fill(items, shape, chosen, name), chosen
    try:
        array, inferred = _convert(data, name)
        chosen = dtype or inferred
        return _cast(array, chosen, copy=True), chosen
    except RecursionError:
        raise _self_referential(name) from None
    except MemoryError as error:
        raise out_of_memory(name, error) from None


def _number_dtype(types: set[type]) -> DType:
    """Return the dtype of a collection of Python numbers of these types."""
    rank = max((_LEAVES[key] for key in types), default=2)
    if rank == 2:
        return get_default_dtype()
    return default_complex() if rank == 3 else (ALL_DTYPES[0] if rank == 0 else _INT64)


def _self_referential(name: str) -> TypeError:
    return TypeError(f"{name}(): new(): self-referential lists are incompatible")


_MOST_NESTED = 128  # as in torch
_INT64 = next(dtype for dtype in ALL_DTYPES if dtype.name == "int64")


def _flatten(data: Any, name: str) -> tuple[list[Any], tuple[int, ...], set[type]] | None:
    """Return numbers, shape and number types of nested lists; None if they hold anything else."""
    shape = [len(data)]
    level: list[Any] = list(data)
    while level:
        types = set(map(type, level))
        if types <= _LEAVES.keys():
            return level, tuple(shape), types
        if not types <= {list, tuple}:
            return None
        if len(shape) > _MOST_NESTED:
            raise _self_referential(name)
        size = len(level[0])
        for item in level:
            if len(item) != size:
                raise ValueError(
                    f"{name}(): expected sequence of length {size} at dim {len(shape)} "
                    f"(got {len(item)})"
                )
        shape.append(size)
        level = list(chain.from_iterable(level))
    return level, tuple(shape), set()


def _fill(items: list[Any], shape: tuple[int, ...], dtype: DType, name: str) -> Array:
    """Return Python numbers as an array of `dtype`."""
    native = NATIVE[dtype]
    try:
        if dtype.category == BOOL:
            return np.array([bool(item) for item in items], native).reshape(shape)
        with np.errstate(all="ignore"):
            if native.names:
                return converted(np.array(items, np.complex64), native).reshape(shape)
            return np.array(items, native).reshape(shape)
    except OverflowError:
        if all(isinstance(item, int) for item in items):
            return _fill_wrapped(items, shape, dtype, name)
        raise RuntimeError(_overflow(name, dtype)) from None
    except ValueError:  # a NaN for an integer
        raise RuntimeError(_overflow(name, dtype)) from None
    except TypeError:
        raise TypeError(f"{name}(): a complex number cannot become {dtype.name}") from None


def _fill_wrapped(items: list[int], shape: tuple[int, ...], dtype: DType, name: str) -> Array:
    """Return ints of which some are out of range: a negative one wraps in an unsigned dtype."""
    if dtype.category > 1:
        raise RuntimeError(_overflow(name, dtype))
    limits = iinfo(dtype)
    lowest = limits.min if dtype.is_signed else -limits.max
    if min(items) < lowest or max(items) > limits.max:
        if max(items) >= 1 << 63 or min(items) < -(1 << 63):
            raise ValueError(f"{name}(): an int does not fit into 64 bits with a sign")
        raise RuntimeError(_overflow(name, dtype))
    return np.array([item % (limits.max + 1) for item in items], NATIVE[dtype]).reshape(shape)


def _overflow(name: str, dtype: DType) -> str:
    return f"{name}(): a value cannot be converted to type {dtype.name} without overflow"


def _convert(data: Any, name: str, nested: bool = False) -> tuple[Array, DType]:
    """Return `data` of any accepted sort as an array, perhaps over its memory, and its dtype.

    `nested` is True of the first item of a sequence, which says how many dimensions there are.
    """
    if type(data) in _LEAVES:
        dtype = _number_dtype({type(data)})
        return _fill([data], (), dtype, name), dtype
    if isinstance(data, TensorBase):
        return host_array(data), data._key.dtype
    if isinstance(data, (str, bytes)):
        what = type(data).__name__
        if nested and isinstance(data, str):
            raise ValueError(f"{name}(): too many dimensions {what!r}")
        raise TypeError(f"{name}(): new(): invalid data type {what!r}")
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data), dtype_of(data)
    if isinstance(data, (bool, int, float, complex)):  # a subclass, such as an enum's member
        plain: Any = next(key for key in _RANKED if isinstance(data, key))
        return _convert(plain(data), name)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        array = np.asarray(data)
        return array, dtype_of(array)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not hasattr(data, "keys"):
        return _stack(data, name)
    if hasattr(data, "__index__"):
        return _convert(data.__index__(), name)
    if hasattr(data, "__float__"):
        return _convert(float(data), name)
    raise RuntimeError(
        f"{name}(): Could not infer dtype of {type(data).__name__}; expected a number, an array, a "
        "tensor or nested sequences of them"
    )


def _stack(data: Sequence[Any], name: str) -> tuple[Array, DType]:
    """Return a sequence whose items may be sequences, arrays and tensors, as one array."""
    flat = _flatten(data, name) if isinstance(data, (list, tuple)) else None
    if flat is not None:
        items, shape, types = flat
        dtype = _number_dtype(types)
        return _fill(items, shape, dtype, name), dtype
    try:
        items = list(data)
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(
            f"{name}(): could not determine the shape of object type '{type(data).__name__}'"
        ) from error
    parts = [_item(item, name, first=not position) for position, item in enumerate(items)]
    if not parts:
        return np.empty(0, NATIVE[get_default_dtype()]), get_default_dtype()
    dtype = parts[0][1]
    first = parts[0][0].shape
    for item, (array, own) in zip(items, parts, strict=True):
        dtype = promote_types(dtype, own)
        if array.ndim != len(first):
            lower = "not a sequence: " if array.ndim < len(first) else ""
            raise TypeError(
                f"{name}(): {lower}expected items of {len(first)} dimensions, got one of {array.ndim}: "
                f"{type(item).__name__}"
            )
        if array.shape != first:
            raise ValueError(
                f"{name}(): expected sequence of length {first[0]} at dim 1 (got "
                f"{array.shape[0]}): "
                f"the items have the shapes {list(first)} and {list(array.shape)}"
            )
    return np.stack([_cast(array, dtype, copy=False) for array, _ in parts]), dtype


def _item(item: Any, name: str, *, first: bool) -> tuple[Array, DType]:
    """Return an item of a sequence as an array; a tensor of one element is a number, as in torch."""
    array, dtype = _convert(item, name, nested=first)
    if array.size == 1 and isinstance(item, TensorBase):
        array = array.reshape(())
    return array, dtype


def _cast(array: Array, dtype: DType, *, copy: bool) -> Array:
    """Return `array` in `dtype`, row by row in memory and in native byte order if copied."""
    native = NATIVE[dtype]
    if array.dtype.kind == "c" and dtype.category != COMPLEX and dtype.category != BOOL:
        array = array.real
    with np.errstate(all="ignore"):
        if copy:
            if native.names or array.dtype.names:
                return np.array(converted(array, native), order="C", copy=True)
            return np.array(array, dtype=native, order="C", copy=True)
        return converted(array, native)
