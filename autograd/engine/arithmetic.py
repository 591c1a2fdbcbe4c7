"""Arithmetic of gradients: raw arrays in a plain backward, else tensors."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.keys import DispatchKey
from tensorplug.core.tensor.base import TensorBase, new_tensor, storage_of
from tensorplug.core.tensor.shapes import Shape

ADD = op_registry.handle("add")
FILL_NEW = op_registry.handle("fill_new")
SUM = op_registry.handle("sum")
VIEW = op_registry.handle("view")


def normal(array: Any, key: DispatchKey) -> Any:
    """Return a kernel's result as an array of the device (NumPy turns 0-d results into scalars)."""
    return array if type(array) is key.array_type else key.as_array(array)


def sum_to_shape(array: Any, shape: Shape, key: DispatchKey) -> Any:
    """Return the sum of `array` over the dimensions along which `shape` was broadcast to its own."""
    array = normal(array, key)
    own = array.shape
    if own == shape:
        return array
    lead = len(own) - len(shape)
    dims = tuple([d for d in range(len(own)) if d < lead or (shape[d - lead] == 1 and own[d] != 1)])
    if dims:
        array = normal(key.kernels[SUM.index](array, dims, False), key)
    if array.shape != shape:
        array = key.kernels[VIEW.index](array, shape)
    return array


def zeros(key: DispatchKey, shape: Shape, raw: bool) -> Any:
    """Return zeros as a raw array or a tensor."""
    if not raw:
        return FILL_NEW.call(shape, 0, key.dtype, key.device)
    return normal(key.kernels[FILL_NEW.index](shape, 0, key.dtype), key)


def add(
    a: Any, b: Any, key: DispatchKey, raw: bool, fresh_a: bool = False, fresh_b: bool = False
) -> Any:
    """Return the sum of two gradients, in the memory of one that nobody else holds if there is one."""
    if not raw:
        return a + b
    index = ADD.index
    array_type = key.array_type
    if type(a) is array_type and type(b) is array_type:
        writer = key.writers[index]
        if writer is not None:
            if fresh_a:
                writer(a, b, out=a)
                return a
            if fresh_b:
                writer(a, b, out=b)
                return b
    elif isinstance(a, TensorBase) or isinstance(b, TensorBase):
        # The later first, as in torch: of sparse ones the order of the elements tells.
        total: Any = _tensor(b, key) + _tensor(a, key)
        return total if total._key.intercepts else total._array
    return key.kernels[index](a, b)


def _tensor(value: Any, key: DispatchKey) -> Any:
    """Return a gradient as a tensor; one that has no array, such as a sparse one, is one already."""
    if isinstance(value, TensorBase):
        return value
    array = normal(value, key)
    return new_tensor(array, key, tuple(array.shape))


def shown(array: Any, key: DispatchKey) -> Any:
    """Return the tensor of a gradient for somebody to see; to one that is expanded nothing can be written."""
    tensor = new_tensor(array, key, array.shape)
    if not key.runtime.is_contiguous(array):
        storage_of(tensor)  # as a view, whose elements may share memory
    return tensor
