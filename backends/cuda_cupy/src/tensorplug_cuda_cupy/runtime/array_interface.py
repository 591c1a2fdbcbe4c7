"""``__cuda_array_interface__``, version 3: memory of GPUs shown to other libraries, theirs taken.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html. Who takes an array makes a stream of
its own wait for the one that the interface names, so neither side waits on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._cupy import cp
from ..dtypes import BFLOAT16, DTYPES

NAME = "__cuda_array_interface__"
_LEGACY_DEFAULT = 1  # what the default stream is called there: 0 is not allowed


def shown(array: Any) -> dict[str, Any]:
    """Return the interface of an array; of one whose elements lie row by row without strides."""
    stream = cp.cuda.get_current_stream(array.device.id).ptr
    return {
        # As torch and ml_dtypes write it, for want of a code of its own.
        "typestr": "<V2" if array.dtype == BFLOAT16 else array.dtype.str,
        "shape": tuple(array.shape),
        "strides": None if array.flags.c_contiguous else tuple(array.strides),
        "data": (array.data.ptr if array.size else 0, False),
        "stream": stream or _LEGACY_DEFAULT,
        "version": 3,
    }


def taken(producer: Any) -> Any:
    """Return an array over the memory of an object with the interface, which it keeps.

    Raises
    ------
    TypeError
        If what it says is incomplete, or not of the right kind, or the memory must not be written to.
    ValueError
        If memory of the kind cannot be shown: with a mask, big-endian, of negative strides, or a dtype
        that is not there.
    """
    told = getattr(producer, NAME)
    if not isinstance(told, dict):
        raise TypeError(f"`{NAME}` must be a dict")
    for name in ("typestr", "shape", "data"):
        if told.get(name) is None:
            raise TypeError(f"attribute `{name}` must exist")
    dtype = _dtype(told["typestr"])
    shape = _sizes("shape", told["shape"])
    data = told["data"]
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[0], int):
        raise TypeError("`data` must be a 2-tuple of (int, bool)")
    if data[1]:
        raise TypeError("the read only flag is not supported, should always be False")
    if told.get("mask") is not None:
        raise ValueError("masked arrays are not supported")
    strides = told.get("strides")
    if strides is not None:
        strides = _sizes("strides", strides)
        if len(strides) != len(shape):
            raise TypeError(f"strides must be a sequence of the same length as shape, {len(shape)}")
        if any([stride % dtype.itemsize for stride in strides]):
            raise ValueError(
                "given array strides not a multiple of the element byte size. Make a copy of the array to "
                "reallocate the memory."
            )
        if min(strides, default=0) < 0:
            raise ValueError("negative strides are not supported; make a copy of the array")
    array = _over(producer, data[0], shape, strides, dtype)
    stream = told.get("stream")
    if stream is not None and array.size:
        _wait_for(stream, array.device)
    return array


def _dtype(typestr: Any) -> np.dtype[Any]:
    if not isinstance(typestr, str) or len(typestr) < 3:
        raise TypeError("attribute `typestr` must be a string of at least three characters")
    if typestr[0] == ">":
        raise ValueError(
            "tensors hold their elements with the lowest byte first, these have the highest"
        )
    try:
        dtype = BFLOAT16 if typestr in ("<V2", "|V2") else np.dtype(typestr)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in DTYPES:
        raise TypeError(f"can't convert elements of type {typestr!r} to a tensor's")
    return dtype


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or not all([isinstance(size, int) for size in value]):
        raise TypeError(f"attribute `{name}` must be a sequence of integers")
    return tuple(value)


def _over(
    producer: Any, place: int, shape: tuple[int, ...], strides: Any, dtype: np.dtype[Any]
) -> Any:
    if 0 in shape:  # whose address says nothing
        return cp.empty(shape, dtype)
    steps = strides
    if steps is None:
        steps = tuple([dtype.itemsize * int(np.prod(shape[d + 1 :])) for d in range(len(shape))])
    reach = sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)]) + dtype.itemsize
    memory = cp.cuda.UnownedMemory(place, reach, producer)
    return cp.ndarray(shape, dtype, cp.cuda.MemoryPointer(memory, 0), steps)


def _wait_for(stream: Any, device: Any) -> None:
    """Let what is queued from now on wait for what a stream of another library has queued."""
    if not isinstance(stream, int) or stream == 0:
        raise ValueError(f"`stream` must be None, or an address other than 0, got {stream!r}")
    with device:
        current = cp.cuda.get_current_stream()
        theirs = 0 if stream == _LEGACY_DEFAULT else stream
        if theirs != current.ptr:
            mark = cp.cuda.Event(disable_timing=True)
            cp.cuda.runtime.eventRecord(mark.ptr, theirs)
            current.wait_event(mark)
