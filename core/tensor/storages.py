"""Storages: the memory behind tensors, as objects of torch's names.

A tensor here shows its memory itself; a storage is made when it is asked for, and two of the same memory
are equal. ``tensor.untyped_storage().data_ptr()`` tells which tensors share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

from ..device.device import Device
from ..device.dtypes import DType, get_default_dtype, uint8
from ..dispatch import layers
from ..dispatch.keys import default_device
from ..dispatch.state import dispatch_state
from . import creation, host
from .base import new_tensor, storage_of
from .exposure import taken_from
from .legacy import is_size
from .shapes import as_shape, contiguous_strides


def whole(tensor: Any) -> Any:
    """Return a 1-d tensor of a tensor's dtype over all the memory that it is part of."""
    plain = tensor.detach()
    key = plain._key
    size = key.runtime.storage_nbytes(plain._array) // key.dtype.itemsize
    if not size:
        return creation.empty_of((0,), key.dtype, key.device)
    if plain.is_contiguous() and plain.numel() == size:
        shown = plain.view(-1)
    else:
        shown = plain.as_strided((size,), (1,), 0)
    return _bare(shown)


def _bare(tensor: Any) -> Any:
    """Return the tensor, which counts writes with its base, as no view."""
    result = new_tensor(tensor._array, tensor._key, tensor._shape)
    result._storage = storage_of(tensor)
    return result


def check_readable(storage: Any) -> None:
    """Refuse to read what has no data."""
    if storage.device.type == "meta":
        raise NotImplementedError(
            "Not available for 'meta' device type: the storage has a size, and no data"
        )


class UntypedStorage:
    """The bytes of a memory.

    Parameters
    ----------
    size : int or sequence of int, optional
        How many bytes, which may then hold anything; or their values.
    device : Device or str, optional
        Where.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2, 3)
    >>> x[1].untyped_storage() == x.untyped_storage(), x.untyped_storage().nbytes()
    (True, 24)
    >>> tp.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    is_sparse = is_sparse_csr = False

    def __init__(self, size: Any = 0, *, device: Device | str | None = None) -> None:
        where = Device(device) if device is not None else default_device()
        if is_size(size):
            size = size.__index__()
            if size < 0:
                raise RuntimeError(f"UntypedStorage: a size must not be negative, got {size}")
            self._elements = creation.empty_of((size,), uint8, where)
        else:
            self._elements = creation.tensor(list(size), dtype=uint8, device=where)

    @classmethod
    def _over(cls, tensor: Any) -> UntypedStorage:
        """Return the storage of a tensor."""
        if dispatch_state.layers_active:
            layers.note_read(tensor, "its storage")
        made = cls.__new__(cls)
        made._elements = whole(tensor)
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the bytes of a file, mapped.

        Parameters
        ----------
        filename : path
            The file.
        shared : bool
            Whether writes go to the file, which is made, or made longer, if it has less than `nbytes`.
            Else they go to a copy of the page that they touch.
        nbytes : int
            How many; the file must have them unless `shared` is set.
        """
        import mmap

        name = os.fspath(filename)
        flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
        handle = os.open(name, flags | getattr(os, "O_BINARY", 0), 0o600)
        try:
            present = os.fstat(handle).st_size
            if present < nbytes:
                if not shared:
                    raise RuntimeError(
                        f"from_file(): {name!r} has {present} bytes, fewer than the {nbytes} asked for"
                    )
                os.ftruncate(handle, nbytes)
            made = cls(0, device="cpu")
            if nbytes:
                access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
                memory = mmap.mmap(handle, nbytes, access=access)
                made._elements = host.from_buffer(memory, uint8, -1, 0)
            return made
        finally:
            os.close(handle)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0,
        dtype: DType = uint8,
    ) -> UntypedStorage:  # fmt: skip
        """Return a copy of the bytes of an object with the buffer protocol."""
        elements = host.from_buffer(bytearray(buffer), dtype, count, offset)
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"invalid byte_order {byte_order!r} (expected 'big' or 'little')")
        import sys

        if byte_order not in ("native", sys.byteorder) and dtype.itemsize > 1:
            host.host_array(elements).byteswap(inplace=True)
        return cls._over(elements)

    # --- what it is ---

    @property
    def device(self) -> Device:
        """Where the bytes are."""
        where: Device = self._elements.device
        return where

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):  # what tensors have for each device type
            cls = type(self._elements)
            if name.startswith("is_") and hasattr(cls, name):
                return getattr(self._elements, name)
            if hasattr(cls, f"is_{name}") and hasattr(cls, name):
                move = getattr(self._elements, name)
                return lambda *args, **kwargs: UntypedStorage._over(move(*args, **kwargs))
        raise AttributeError(f"'UntypedStorage' object has no attribute {name!r}")

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 of no bytes, or where there are no addresses."""
        return self._elements.data_ptr() if self._elements.numel() else 0

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        count: int = self._elements.numel() * self._elements.dtype.itemsize
        return count

    def size(self) -> int:
        """Return how many bytes there are."""
        return self.nbytes()

    __len__ = nbytes

    def element_size(self) -> int:
        """Return 1: the elements are bytes."""
        return 1

    def get_device(self) -> int:
        """Return the index of the device; -1 on the host."""
        index: int = self._elements.get_device()
        return index

    def untyped(self) -> UntypedStorage:
        """Return the storage."""
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        place = self.data_ptr(), self.nbytes(), self.device
        same = place == (other.data_ptr(), other.nbytes(), other.device) and place[0] != 0
        return self is other or same

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        values = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        return (
            f" {values}\n[tensorplug.UntypedStorage(device={self.device}) of size {self.nbytes()}]"
        )

    # --- what it holds ---

    @property
    def _bytes(self) -> Any:
        """A 1-d tensor of uint8 over the memory."""
        elements = self._elements
        return elements if elements.dtype is uint8 else _bare(elements.view(uint8))

    def _tensor(self, dtype: DType) -> Any:
        """Return a 1-d tensor of a dtype over the memory, as much of it as makes whole elements."""
        if self._elements.dtype is dtype:
            return _bare(self._elements)
        size = dtype.itemsize
        whole = self._bytes[: self.nbytes() // size * size]
        return (
            _bare(whole.view(dtype))
            if whole.numel()
            else creation.empty_of((0,), dtype, self.device)
        )

    def tolist(self) -> list[int]:
        """Return the bytes as numbers."""
        check_readable(self)
        values: list[int] = self._bytes.tolist()
        return values

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        check_readable(self)
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError("UntypedStorage: slices must have a step of 1")
            made = UntypedStorage.__new__(UntypedStorage)
            made._elements = _bare(self._bytes[index])
            return made
        return self._bytes[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value

    def fill_(self, value: int) -> Self:
        """Set each byte."""
        self._bytes.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copy the bytes of another storage of the same size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"UntypedStorage.copy_(): size does not match, self was {self.nbytes()} bytes but "
                f"src was {source.nbytes()} bytes"
            )
        self._bytes.copy_(source.untyped()._bytes, non_blocking=bool(non_blocking))
        return self

    def clone(self) -> UntypedStorage:
        """Return a copy."""
        return UntypedStorage._over(self._elements.clone())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        # What tensors of the same memory become in the same copy is not known here.
        known = memo.setdefault("tensorplug.storages", {})
        if self not in known:
            known[self] = self.clone()
        copied: UntypedStorage = known[self]
        return copied

    def new(self, size: Any = 0) -> UntypedStorage:
        """Return a new storage on the same device."""
        return UntypedStorage(size, device=self.device)

    def resize_(self, size: int) -> Self:
        """Give the storage another size; tensors keep the memory that they have.

        Raises
        ------
        RuntimeError
            If the memory belongs to somebody else.
        """
        if not self.resizable():
            raise RuntimeError(
                "resize_(): Trying to resize storage that is not resizable: somebody else has its memory"
            )
        if size != self.nbytes():
            made = creation.empty_of((size,), uint8, self.device)
            kept = min(size, self.nbytes())
            made[:kept].copy_(self._bytes[:kept])
            self._elements = made
        return self

    def byteswap(self, dtype: DType) -> None:
        """Reverse the bytes of each element of a dtype; of complex numbers, those of each part."""
        if self.nbytes() % dtype.itemsize:
            raise RuntimeError(
                f"byteswap(): the length of data, {self.nbytes()} bytes, is not a multiple of "
                f"{dtype.itemsize}"
            )
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        if width > 1 and self.nbytes():
            rows = self._bytes.view(-1, width)
            rows.copy_(rows.flip(1))

    def resizable(self) -> bool:
        """Return whether the storage can be given another size: unless somebody else has its memory."""
        return not taken_from(self._elements._array)

    def to(self, *, device: Device | str, non_blocking: bool = False) -> UntypedStorage:
        """Return the storage, or a copy of it on another device."""
        if Device(device) == self.device:
            return self
        return UntypedStorage._over(self._elements.to(device, non_blocking=non_blocking))

    def cpu(self) -> UntypedStorage:
        """Return the storage, or a copy of it on the host."""
        return self.to(device="cpu")

    def is_shared(self) -> bool:
        """Return whether other processes can see the bytes."""
        shared: bool = self._elements.is_shared()
        return shared

    def share_memory_(self) -> Self:
        """Move the storage to memory that other processes see; tensors keep what they have.

        ``tensor.share_memory_()`` moves a tensor.
        """
        self._elements.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the memory is page-locked."""
        pinned: bool = self._elements.is_pinned()
        return pinned

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """Return a copy in page-locked memory."""
        return UntypedStorage._over(self._elements.pin_memory())

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type."""
        if dtype is None:
            return "tensorplug.UntypedStorage"
        raise TypeError("UntypedStorage.type(): bytes have no other type; use a tensor")

    def __reduce__(self) -> tuple[Any, ...]:
        return _untyped, (self._elements,)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()


def _untyped(elements: Any) -> UntypedStorage:
    return UntypedStorage._over(elements)


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    r"""Return a 1-d tensor over a file, mapped.

    Parameters
    ----------
    filename : path
        The file.
    shared : bool, optional
        Whether writes go to the file, which is made, or made longer, if it is too short.
    size : int
        How many elements.
    dtype : DType, optional
        Of the elements; by default the default dtype.
    device : Device or str, optional
        Where the tensor goes.
    requires_grad : bool
        Whether it is a leaf that requires grad.

    Examples
    --------
    >>> import tempfile
    >>> import tensorplug as tp
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     x = tp.from_file(file.name, shared=True, size=3, dtype=tp.int32)
    ...     x[1] = 5
    ...     file.read()[4:8]
    b'\x05\x00\x00\x00'
    """
    chosen = dtype or get_default_dtype()
    untyped = UntypedStorage.from_file(filename, bool(shared), (size or 0) * chosen.itemsize)
    made = untyped._tensor(chosen)
    made = made if device is None else made.to(device)
    return creation.leaf(made) if requires_grad else made


def shown(source: Any, key: Any, offset: int, size: Any, stride: Any) -> Any:
    """Return a tensor of a dispatch key over a storage, for ``set_``.

    Raises
    ------
    RuntimeError
        If the sizes, strides and offset reach beyond the storage, or it is on another device.
    """
    untyped = source.untyped()
    if untyped.device != key.device:
        raise RuntimeError(
            f"set_(): expected a storage on {key.device}, got one on {untyped.device}"
        )
    elements = untyped._tensor(key.dtype)
    shape = (elements.numel() - offset,) if size is None else as_shape((size,), "set_")
    steps = contiguous_strides(shape) if stride is None else tuple(stride)
    try:
        return creation.show_memory(elements, shape, steps, offset)
    except ValueError as error:
        raise RuntimeError(f"set_(): {error}; out of bounds for the storage") from None
