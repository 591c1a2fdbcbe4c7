"""Arithmetic of gradients: raw arrays in a plain backward, else tensors."""

from __future__ import annotations

from typing import Any

from tensorplug.core import operators
from tensorplug.core.kinds import Kind
from tensorplug.core.shapes import Shape
from tensorplug.core.tensor_base import new_tensor

ADD = operators.handle("add")
FILL_NEW = operators.handle("fill_new")
SUM = operators.handle("sum")
VIEW = operators.handle("view")


def normal(array: Any, kind: Kind) -> Any:
    """Return a kernel's result as an array of the device (NumPy turns 0-d results into scalars)."""
    return array if type(array) is kind.array_type else kind.as_array(array)


def sum_to_shape(array: Any, shape: Shape, kind: Kind) -> Any:
    """Return the sum of `array` over the dimensions along which `shape` was broadcast to its own."""
    array = normal(array, kind)
    own = array.shape
    if own == shape:
        return array
    lead = len(own) - len(shape)
    dims = tuple([d for d in range(len(own)) if d < lead or (shape[d - lead] == 1 and own[d] != 1)])
    if dims:
        array = normal(kind.kernels[SUM.index](array, dims, False), kind)
    if array.shape != shape:
        array = kind.kernels[VIEW.index](array, shape)
    return array


def zeros(kind: Kind, shape: Shape, raw: bool) -> Any:
    """Return zeros as a raw array or a tensor."""
    array = normal(kind.kernels[FILL_NEW.index](shape, 0, kind.dtype), kind)
    return array if raw else new_tensor(array, kind, shape)


def add(a: Any, b: Any, kind: Kind, raw: bool, fresh_a: bool = False, fresh_b: bool = False) -> Any:
    """Return the sum of two gradients, in the memory of one that nobody else holds if there is one."""
    if not raw:
        return a + b
    index = ADD.index
    writer = kind.writers[index]
    if writer is not None:
        array_type = kind.array_type
        if fresh_a and type(a) is array_type:
            writer(a, b, out=a)
            return a
        if fresh_b and type(b) is array_type:
            writer(a, b, out=b)
            return b
    return kind.kernels[index](a, b)
