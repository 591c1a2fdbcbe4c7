"""What a key of ``tensor[key]`` says: the view that its basic parts make, and the index tensors beside."""

from __future__ import annotations

import warnings
from typing import Any, cast

from ..device.dtypes import bool_, int32, int64, uint8
from ..dispatch import op_registry, overrides
from ..dispatch.arguments import Foreign
from ..dispatch.execution import show
from ..dispatch.keys import dispatch_key
from ..errors import warn
from ..ops.indexing.indexing import mask_of_bytes, sliced_shape
from .base import TensorBase, new_tensor
from .host_data import from_data
from .shapes import Shape

BASIC_INDEX = op_registry.handle("basic_index")

#: A dimension that is kept as it is.
WHOLE = slice(None)


def parse(input: Any, key: Any) -> tuple[Any, list[Any]]:
    """Return the view that the basic parts of a key make, and the index tensors that are left."""
    items: Any = key if type(key) is tuple else _items(key)
    shape: Shape = input._shape
    named = 0  # dimensions that the key speaks of
    parts: list[Any] = []
    part: Any
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, (bool, int, slice)):
            part = item
        else:
            part = _part(item, input)
        parts.append(part)
        if isinstance(part, TensorBase):
            named += len(part._shape) if part._key.dtype in (bool_, uint8) else 1
        elif part is not None and part is not Ellipsis and not isinstance(part, bool):
            named += 1
    if named > len(shape):
        if not shape:
            raise out_of_bounds(0, shape)
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list[Any] = []
    indices: list[Any] = []
    advanced = changed = False
    dim = 0
    for part in parts:
        if part is Ellipsis:
            whole = len(shape) - named
            named = len(shape)  # a second Ellipsis stands for nothing
            basic.extend([WHOLE] * whole)
            indices.extend([None] * whole)
            dim += whole
        elif part is None:
            basic.append(None)
            indices.append(None)
            changed = True
        elif isinstance(part, bool):
            basic.append(None)
            indices.append(_truth(part, input))
            changed = advanced = True
        elif isinstance(part, int):
            size = shape[dim]
            if not -size <= part < size:
                raise IndexError(
                    f"index {part} is out of bounds for dimension {dim} with size {size}"
                )
            basic.append(part + size if part < 0 else part)
            dim += 1
            changed = True
        elif isinstance(part, slice):
            basic.append(bounded(part, shape[dim]))
            indices.append(None)
            dim += 1
            changed = True
        elif not isinstance(part, TensorBase):
            # As torch, for which a string is data of a new tensor.
            kind = TypeError if isinstance(part, str) else IndexError
            raise kind(_no_index(part))
        else:
            width = len(part._shape) if part._key.dtype in (bool_, uint8) else 1
            basic.extend([WHOLE] * width)
            indices.append(part)
            dim += width
            advanced = True
    if changed:
        while basic and basic[-1] is WHOLE:
            basic.pop()
        found = tuple(basic)
        if found:
            input = show(BASIC_INDEX, input, (found,), sliced_shape(shape, found))
    return input, indices if advanced else []


def _no_index(part: Any) -> str:
    return (
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(part).__name__})"
    )


def _items(key: Any) -> tuple[Any, ...]:
    """Return the parts of a key that is no tuple.

    A short list that holds anything but numbers stands for a tuple, as in torch (with its warning).
    """
    if not isinstance(key, list) or len(key) >= 32:
        return (key,)
    if any([_is_key(item) for item in key]):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated, because it may come to "
            "mean a tensor of positions; use x[tuple(seq)] instead of x[seq]",
            UserWarning,
            stacklevel=5,
        )
        return tuple(key)
    return (key,)


def _is_key(item: Any) -> bool:
    """Return whether an entry of a list makes the list stand for a tuple."""
    if (
        isinstance(item, (TensorBase, list, tuple, range, slice))
        or item is None
        or item is Ellipsis
    ):
        return True
    return hasattr(item, "__array_interface__") and hasattr(item, "__len__")  # no scalar


def _part(item: Any, input: Any) -> Any:
    """Return a part of a key as int, bool or index tensor; what is none of these as it is."""
    if isinstance(item, TensorBase):
        dtype = item._key.dtype
        if dtype is bool_ or dtype is uint8:
            if dtype is uint8 and not item._shape:
                warn(mask_of_bytes("index"), UserWarning)
            return item if item._shape else bool(item)
        if dtype not in (int32, int64) and (item._shape or dtype.category > 1):
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {dtype}"
            )
        # A position that differs along a dimension that vmap hides is no number.
        return item if item._shape or getattr(item, "_batched", False) else int(cast(Any, item))
    if isinstance(item, (list, tuple, range)) or hasattr(item, "__array_interface__"):
        return _from_host(item, input)
    if hasattr(item, "__index__"):
        if getattr(item, "shape", None):  # a number would drop the dimensions that the index has
            raise TypeError(
                f"an index of type {type(item).__module__}.{type(item).__qualname__} and shape "
                f"{list(item.shape)} is no tensor of this library; from_dlpack() takes those of others"
            )
        return item.__index__()
    if overrides.overrides(type(item)):
        raise Foreign(_no_index(item))
    return item  # refused when its turn comes, as in torch


def _from_host(item: Any, input: Any) -> Any:
    """Return a sequence or NumPy array as an index tensor; a 0-d array as an int or bool."""
    if not getattr(item, "shape", True) and hasattr(item, "__index__"):
        try:
            return item.__index__()
        except TypeError:
            pass
    if isinstance(item, range):
        item = list(item)
    if isinstance(item, (list, tuple)) and not item:
        array, dtype = from_data([], int64, "index")
    else:
        array, dtype = from_data(item, None, "index")
    if dtype is not bool_ and dtype is not uint8:
        if dtype.category > 1:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {dtype}"
            )
        array, dtype = from_data(array, int64, "index")
    if not array.shape:
        return bool(array)
    key = dispatch_key(input._key.device, dtype)
    device_array = key.runtime.from_host(array, dtype, key.device.index or 0)
    return new_tensor(device_array, key, tuple(array.shape))


def _truth(value: bool, input: Any) -> Any:
    """Return the index tensor that keeps a new dimension of size 1, or empties it."""
    return _from_host([0] if value else [], input)


def bounded(item: slice, size: int) -> slice:
    """Return a slice with nonnegative bounds within the size."""
    start, stop, step = item.start, item.stop, item.step
    if step is None and type(start) is int and type(stop) is int and 0 <= start <= stop <= size:
        return slice(start, stop, 1)
    if step is not None and step.__index__() <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    if start is None and stop is None and step is None:
        return WHOLE
    if isinstance(start, TensorBase):
        start = cast(Any, start).__index__()
    if isinstance(stop, TensorBase):
        stop = cast(Any, stop).__index__()
    start, stop, step = slice(start, stop, step).indices(size)
    return slice(start, max(start, stop), step)


def out_of_bounds(key: int, shape: Shape) -> IndexError:
    """Return the error of an int that is no position of the first dimension."""
    if not shape:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor "
            "to a number"
        )
    return IndexError(f"index {key} is out of bounds for dimension 0 with size {shape[0]}")
