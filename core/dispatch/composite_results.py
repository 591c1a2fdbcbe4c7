"""Tensors of what kernels of composites return."""

from __future__ import annotations

from typing import Any

from ..tensor.base import unset_tensor, wrap
from .call_cache import CachedCall
from .execution import contract
from .keys import DispatchKey
from .op import Op
from .state import dispatch_state


def finished(op: Op, cached: CachedCall, array: Any) -> Any:
    """Return the tensor of what a kernel with one output returned in a cached call."""
    result = cached.result
    if result is None:  # the first call like this
        key = cached.key
        if type(array) is not key.array_type:
            array = key.as_array(array)
        result = cached.result = key.with_dtype(key.runtime.dtype(array))
    elif type(array) is not result.array_type:
        array = result.as_array(array)
    shape: Any = tuple(array.shape)
    if cached.shape is not None and shape != cached.shape:
        raise contract(op, cached.key, f"shape {list(shape)}", f"{list(cached.shape)}")
    output = unset_tensor()  # set here: as Python, a call costs more than all of it
    output._array = array
    output._key = result
    output._shape = shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    output._view = None
    return output


def finished_all(op: Op, cached: CachedCall, arrays: Any) -> Any:
    """Return the tensors of what a kernel with several outputs returned in a cached call."""
    keys: Any = cached.outputs
    if not keys:  # the first call like this
        outputs = wrapped(op, cached.key, arrays)
        cached.outputs = tuple([output._key for output in outputs])
        return outputs
    found: list[Any] = []
    for number, array in enumerate(arrays):
        key: DispatchKey = keys[number]
        if type(array) is not key.array_type:
            array = key.as_array(array)
        output = unset_tensor()  # set here: as Python, a call costs more than all of it
        output._array = array
        output._key = key
        output._shape = tuple(array.shape)
        output._state = 0
        output._node = None
        output._writes = 0
        output._storage = None
        output._extra = None
        output._view = None
        if dispatch_state.inference:
            dispatch_state.gradient.mark_if_inference(output)
        found.append(output)
    named: Any = op.named
    return tuple(found) if named is None else named(*found)


def wrapped(op: Op, key: DispatchKey, results: Any) -> Any:
    """Return the tensors of what a kernel returned."""
    # A tuple may hold tuples, such as a histogram's edges per dimension.
    outputs = tuple(
        [wrapped(op, key, a) if type(a) is tuple else output_of(key, a) for a in results]
    )
    named: Any = op.named
    return outputs if named is None else named(*outputs)


def output_of(key: DispatchKey, array: Any) -> Any:
    """Return the tensor of one array, of whichever dtype it is."""
    if type(array) is not key.array_type:
        array = key.as_array(array)
    output = wrap(array, key.with_dtype(key.runtime.dtype(array)))
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output
