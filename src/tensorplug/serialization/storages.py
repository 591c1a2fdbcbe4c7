"""The memories of a file, and the devices that they go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU, Device
from tensorplug.core.device.dtypes import DType, uint8
from tensorplug.core.errors import DeviceNotAvailableError
from tensorplug.core.tensor import creation, host_memory
from tensorplug.core.tensor.storages import UntypedStorage
from tensorplug.core.tensor.typed_storages import TypedStorage

MapLocation = Callable[[Any, str], Any] | Device | str | Mapping[str, Any] | None


class LoadedStorage(TypedStorage):
    """What a reference to a memory stands for in a pickle: made when somebody asks for what it holds."""

    def __init__(self, source: Storage | StoragePart) -> None:
        self.source = source
        self.dtype = source.dtype or uint8

    def __getattr__(self, name: str) -> Any:
        if name == "_untyped_storage":
            made = self.source.untyped()
            self.__dict__[name] = made
            return made
        return super().__getattr__(name)


class Storage:
    """The bytes of one memory; what a map_location function is called with."""

    def __init__(self, memory: memoryview, swapped: bool, dtype: DType | None) -> None:
        self._memory = memory
        self._swapped = swapped
        self.dtype = dtype
        self._typed: dict[DType, Any] = {}
        self.device = CPU

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return len(self._memory)

    def to(self, device: Any) -> Storage:
        """Return the storage, to be put on another device."""
        self.device = Device(device)
        return self

    def cpu(self) -> Storage:
        """Return the storage, to stay on the host."""
        return self.to(CPU)

    def __getattr__(self, name: str) -> Callable[..., Storage]:
        # Programs say `lambda storage, location: storage.<device type>(index)`.
        if name.startswith("_") or not hasattr(Tensor, f"is_{name}"):
            raise AttributeError(f"a storage has no attribute {name!r}")
        return lambda index=None: self.to(Device(name) if index is None else Device(name, index))

    def typed(self, dtype: DType | None) -> Any:
        """Return a 1-d tensor over the whole memory."""
        chosen = dtype or self.dtype or uint8
        known = self._typed.get(chosen)
        if known is None:
            if not len(self._memory):
                known = creation.empty_of((0,), chosen, CPU)
            else:
                known = host_memory.from_bytes(self._memory, chosen, self._swapped)
            self._typed[chosen] = known = placed(known, self.device)
        return known

    def untyped(self) -> Any:
        """Return the storage of the tensors."""
        return self.typed(None).untyped_storage()


class StoragePart:
    """Some elements of a storage, which are a storage of their own that shares their memory."""

    def __init__(self, whole: Any, start: int, count: int) -> None:
        self._whole = whole
        self._elements = slice(start, start + count)
        self.dtype = whole.dtype

    def typed(self, dtype: DType | None) -> Any:
        """Return a 1-d tensor over the elements."""
        return self._whole.typed(dtype)[self._elements]

    def untyped(self) -> Any:
        """Return a storage of these elements alone."""
        made = UntypedStorage.__new__(UntypedStorage)
        made._elements = self.typed(None)  # what is made of a tensor has its whole memory
        return made


def placed(tensor: Any, device: Device) -> Any:
    """Return a tensor of the host on a device."""
    if device is CPU:
        return tensor
    try:
        return tensor.to(device)
    except DeviceNotAvailableError as error:
        raise DeviceNotAvailableError(
            f"load(): Attempting to deserialize object on a {device.type.upper()} device, "
            f"{device}, that is not available. {error}. To load it onto another device, "
            "pass "
            'map_location="cpu"'
        ) from error


def locate(storage: Storage, location: str, wanted: MapLocation) -> None:
    """Note on a storage where its tensors are to be."""
    if wanted is None:
        storage.to(location)
    elif isinstance(wanted, (Device, str)):
        storage.to(wanted)
    elif isinstance(wanted, Mapping):
        storage.to(wanted.get(location, location))
    else:
        chosen = wanted(storage, location)
        if chosen is None:
            storage.to(location)
        elif isinstance(chosen, (Device, str)):
            storage.to(chosen)
        elif chosen is not storage:
            raise TypeError(
                f"load(): map_location must return the storage, a device or None, got {chosen!r}"
            )
