"""Storages that are read as one dtype, which torch keeps for old programs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any, Self

from ..device.device import Device
from ..device.dtypes import ALL_DTYPES, DType, get_default_dtype, shown as shown_name
from . import creation
from .legacy import is_size
from .storages import UntypedStorage, check_readable

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
    "storage class. This should only matter to you if you are using storages directly. To access "
    "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)


class TypedStorage:
    """The elements of a memory, read as one dtype; torch keeps it for old programs.

    Parameters
    ----------
    *size : int, or sequence of numbers
        How many elements, or their values.
    wrap_storage : UntypedStorage, optional
        The memory.
    dtype : DType, optional
        Of the elements.
    device : Device or str, optional
        Where new memory is made.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.TypedStorage(wrap_storage=tp.ones(2).untyped_storage(), dtype=tp.float32).tolist()
    [1.0, 1.0]
    """

    is_sparse = False
    dtype: DType

    def __init__(
        self,
        *size: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: Device | str | None = None,
        _internal: bool = False,
    ) -> None:
        self.dtype = dtype or get_default_dtype()
        if len(size) > 1:
            raise RuntimeError(f"TypedStorage: expected one size or sequence, got {size}")
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif size and not is_size(size[0]):
            made = creation.tensor(list(size[0]), dtype=self.dtype, device=device)
            self._untyped_storage = UntypedStorage._over(made)
        else:
            count = size[0].__index__() if size else 0
            self._untyped_storage = UntypedStorage(count * self.dtype.itemsize, device=device)

    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    @property
    def _elements(self) -> Any:
        return self._untyped_storage._tensor(self.dtype)

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return self._untyped_storage.nbytes()

    _nbytes = nbytes

    def size(self) -> int:
        """Return how many elements there are."""
        return self.nbytes() // self.dtype.itemsize

    _size = __len__ = size

    def element_size(self) -> int:
        """Return how many bytes an element has."""
        return self.dtype.itemsize

    def get_device(self) -> int:
        """Return the index of the device; -1 on the host."""
        return self._untyped_storage.get_device()

    def pickle_storage_type(self) -> str:
        """Return the name that files have for the type."""
        return f"{_kind(self.dtype)}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type, or the elements as another dtype."""
        if dtype is None:
            return shown_name(self.pickle_storage_type())
        return self._as(dtype)

    def tolist(self) -> list[Any]:
        """Return the elements as numbers."""
        check_readable(self)
        values: list[Any] = self._elements.tolist()
        return values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        check_readable(self)
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def fill_(self, value: Any) -> Self:
        """Set each element."""
        self._elements.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copy the elements of another storage, converted."""
        self._elements.copy_(source._elements)
        return self

    def resizable(self) -> bool:
        """Return whether the storage can be given another size."""
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> Self:
        """Give the storage another size."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def is_shared(self) -> bool:
        """Return whether other processes can see the elements."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> Self:
        """Move the storage to memory that other processes see."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the memory is page-locked."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """Return a copy in page-locked memory."""
        return self._with(self._untyped_storage.pin_memory())

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return self._with(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return self._with(self._untyped_storage.__deepcopy__(memo))

    def cpu(self) -> TypedStorage:
        """Return the storage, or a copy of it on the host."""
        return self._with(self._untyped_storage.cpu())

    def to(self, *, device: Device | str, non_blocking: bool = False) -> TypedStorage:
        """Return the storage, or a copy of it on another device."""
        return self._with(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def _with(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def _as(self, dtype: DType) -> TypedStorage:
        made = self._elements.to(dtype)
        return TypedStorage(wrap_storage=UntypedStorage._over(made), dtype=dtype, _internal=True)

    def __getattr__(self, name: str) -> Any:
        dtype = _CONVERSIONS.get(name)  # storage.float() and its like
        if dtype is not None:
            return lambda: self._as(dtype)
        if name.startswith("_"):
            raise AttributeError(f"'TypedStorage' object has no attribute {name!r}")
        found: Any = getattr(self._untyped_storage, name)
        if name.startswith("is_"):
            return found
        return lambda *args, **kwargs: self._with(found(*args, **kwargs))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        same = self._untyped_storage == other._untyped_storage
        return same and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        values = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        return (
            f" {values}\n[tensorplug.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
            f"{self.size()}]"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _typed, (self._untyped_storage, self.dtype)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()


def _typed(untyped: UntypedStorage, dtype: DType) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


_KINDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte",
    "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
_CONVERSIONS: dict[str, DType] = {
    _KINDS[dtype.name].replace("Complex", "Complex_").lower(): dtype
    for dtype in ALL_DTYPES
    if dtype.name in _KINDS
}


def _kind(dtype: DType) -> str:
    if dtype.name not in _KINDS:
        raise KeyError(f"there is no storage type for {dtype}")
    return _KINDS[dtype.name]


class _Typed(type):
    def __instancecheck__(cls, obj: object) -> bool:
        return isinstance(obj, TypedStorage) and obj.dtype is cls.dtype  # type: ignore[attr-defined]


@functools.cache
def typed_class(dtype: DType) -> Any:
    """Return torch's old class of storages of a dtype, such as ``tp.FloatStorage``."""

    def new(_cls: Any, *size: Any, device: Any = None, wrap_storage: Any = None) -> TypedStorage:
        return TypedStorage(*size, wrap_storage=wrap_storage, dtype=dtype, device=device)

    def from_buffer(
        buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """Return a copy of the bytes of an object with the buffer protocol."""
        found = UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype)
        return _typed(found, dtype)

    def from_file(filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return `size` elements of a file, mapped; as ``UntypedStorage.from_file``."""
        return _typed(UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype)

    name = f"{_kind(dtype)}Storage"
    files = {"from_buffer": staticmethod(from_buffer), "from_file": staticmethod(from_file)}
    members = {
        **files,
        "__new__": new,
        "dtype": dtype,
        "__doc__": f"A ``TypedStorage`` of {dtype.name}.",
    }
    return _Typed(name, (), {**members, "__module__": "tensorplug.storage"})


def storage_of_tensor(tensor: Any, *, warn: bool = False) -> TypedStorage:
    """Return the memory that a tensor is part of, read as its dtype; torch warns that it is deprecated."""
    if warn:
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=3)
    untyped = UntypedStorage._over(tensor)
    return TypedStorage(wrap_storage=untyped, dtype=tensor.dtype, _internal=True)
