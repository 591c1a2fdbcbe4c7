"""Tensor methods that give a tensor other memory: ``resize_``, ``resize_as_``, ``set_``.

``resize_`` shows the memory behind a tensor in another shape, from its first element on. Where there is not
enough the tensor gets new memory, to which the elements are copied, and other tensors keep the old one. No
history is kept of any of this; tensors that require grad are refused.
"""

from __future__ import annotations

import math
from typing import Any

from ..device.determinism import filler, fills_memory
from ..device.dtypes import scalar_type
from ..dispatch.layers import note_opaque, recording
from ..dispatch.state import dispatch_state
from ..ops.rules import check_tensor
from .base import storage_of, version_of
from .creation import empty_of, show_memory
from .exposure import taken_from
from .layout import preserve_format, strides_of, suggested_format
from .predicates import is_tensor
from .shapes import as_shape, check_sizes, contiguous_strides


def _refuse(tensor: Any, name: str) -> None:
    if tensor._extra is not None and tensor._extra.inference:
        if not recording.inference:
            raise RuntimeError(
                f"{name}(): Inplace update to inference tensor outside InferenceMode is not allowed. You can "
                "make a clone to get a normal tensor before doing inplace update."
            )
    elif tensor.requires_grad:
        raise RuntimeError(f"{name}(): cannot resize variables that require grad")


def resize_(self: Any, *sizes: Any, memory_format: Any = None) -> Any:
    """Give the tensor another shape: that many elements of its memory, from its first one on.

    They are the tensor's own, in row order, if that is how it lies in memory; of other tensors those that lie
    between are shown too. What a larger shape adds behind the end of the memory may hold anything.

    Parameters
    ----------
    *sizes : int, or one sequence of int
        The shape.
    memory_format : memory_format, optional
        In which order the elements fill the shape; by default row by row.

    Raises
    ------
    RuntimeError
        If the memory is too small and belongs to somebody else, as that of :func:`from_numpy` does.
    """
    if not sizes:
        raise TypeError("resize_(): the sizes are missing; resize_(()) makes a number")
    shape = check_sizes(as_shape(sizes, "resize_"), "resize_")
    _refuse(self, "resize_")
    stride = None
    if memory_format is not None:
        stride = strides_of(shape, memory_format, self._key, "resize_")
        if self._shape == shape and self.stride() == (stride or contiguous_strides(shape)):
            return self
    elif shape == self._shape:
        return self
    note_opaque("resize_()")
    count = math.prod(shape)
    if math.prod([max(size, 1) for size in shape]) * self._key.dtype.itemsize >= 1 << 63:
        what = "Storage size" if count else "Stride"
        raise RuntimeError(f"{what} calculation overflowed with sizes={list(shape)}")
    if "views" in self._key.runtime.capabilities:
        from .storages import whole  # on first use: saves import time

        offset = self.storage_offset()
        memory = _with_room(whole(self), offset + count if count else 0)
        if count:
            made = show_memory(memory, shape, stride or contiguous_strides(shape), offset)
        else:  # what shows nothing keeps its place, to show elements again in another shape
            made = memory[offset:][:0].view(shape)
        array = made._array
    else:
        array = _with_room(self.detach().reshape(-1), count)[:count].view(shape)._array
    self._array, self._shape = array, shape
    if self._storage is None:
        self._writes += 1
    else:
        self._storage.version += 1  # what shows conjugates keeps the memory as it was
    return self


def _with_room(memory: Any, size: int) -> Any:
    """Return 1-d memory of at least so many elements: as it is, or new memory that begins as it does."""
    present = memory._shape[0]
    if size <= present:
        return memory
    if taken_from(memory._array):
        raise RuntimeError(
            f"resize_(): Trying to resize storage that is not resizable: {size} elements are more than the "
            f"{present} of memory that belongs to somebody else"
        )
    made = empty_of((size,), memory._key.dtype, memory._key.device)
    made[:present].copy_(memory)
    if fills_memory[0]:
        made[present:].fill_(filler(memory._key.dtype))
    return made


def resize_as_(self: Any, the_template: Any, memory_format: Any = None) -> Any:
    """Give the tensor the shape of another, in a format (``tp.preserve_format``: in that of the other).

    See :meth:`resize_`.
    """
    check_tensor(the_template, "resize_as_", "the_template")
    shape = the_template._shape
    if memory_format is preserve_format:
        memory_format = suggested_format(shape, the_template.stride())
    return resize_(self, shape, memory_format=memory_format)


def set_(
    self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Any:
    """Make the tensor show the memory of another of its dtype and device, or a storage.

    Without `source` the tensor becomes empty. It counts as a write: a backward that has saved the tensor, and
    finds other contents in it now, raises.

    Parameters
    ----------
    source : Tensor, UntypedStorage or TypedStorage, optional
        Of a tensor the way it shows its memory is taken over, unless `size` is given.
    storage_offset : int
        How many elements of the storage lie before the first.
    size, stride : sequence of int, optional
        The shape, and the steps in elements; by default all of the storage, row by row.
    """
    if not dispatch_state.grad_disabled or dispatch_state.gradient.enabled():
        _refuse(self, "set_")
    note_opaque("set_()")
    key = self._key
    before = version_of(self)
    if source is None:
        self._array = key.runtime.empty((0,), key.dtype, key.device.index or 0)
        self._shape = (0,)
        self._storage = None
        self._writes = before + 1
        return self
    if size is not None or storage_offset or not is_tensor(source):
        from .storages import UntypedStorage, shown  # on first use: saves import time
        from .typed_storages import TypedStorage  # on first use: saves import time

        memory = source._typed_storage() if is_tensor(source) else source
        if isinstance(memory, (TypedStorage, UntypedStorage)):
            if isinstance(memory, TypedStorage) and memory.dtype is not key.dtype:
                raise RuntimeError(
                    f"set_(): Expected a Storage of type {scalar_type(key.dtype)} or an UntypedStorage, but "
                    f"got type {scalar_type(memory.dtype)}"
                )
            source = shown(memory, key, storage_offset, size, stride)
    check_tensor(source, "set_", "source")
    if source._key is not key:
        raise RuntimeError(
            f"set_(): expected a source of {key.dtype.name} on {key.device}, got "
            f"{source.dtype.name} on {source.device}"
        )
    storage = storage_of(source)
    if self._storage is not storage and storage.version <= before:
        # From now on one count for both, and a new one for this tensor.
        storage.version = before + 1
    self._array, self._shape, self._storage = source._array, source._shape, storage
    return self


for _method in (resize_, resize_as_, set_):
    dispatch_state.add_method(_method.__name__, _method)
