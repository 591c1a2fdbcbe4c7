"""Reading objects: the memories of an archive, and where their tensors go."""

from __future__ import annotations

import os
import pickle
import reprlib
from typing import Any

from tensorplug.core.device.dtypes import DType
from tensorplug.core.errors import DeviceNotAvailableError

from .archive import FileFormatError, Reader, opened_for_reading
from .legacy import LegacyReader, starts_here
from .storages import MapLocation, Storage, locate
from .unpickling import Unpickler


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """Return the object that :func:`save` or ``torch.save`` wrote to a file.

    Parameters
    ----------
    f : path or file object
        Where from.
    map_location : Device, str, mapping or callable, optional
        Where tensors go instead of the device that they were saved from: one device for all, a
        mapping from device to device, or ``f(storage, device) -> storage`` as in torch, where None
        leaves the choice to the file.
    pickle_module
        Accepted for compatibility.
    weights_only : bool, optional
        Accepted for compatibility, and no matter: names in the file other than those of tensors,
        plain containers and what :func:`add_safe_globals` added are always refused, so that no code
        of the file's author runs.
    mmap : bool, optional
        Map the file, given as a path, instead of reading it: tensors on the CPU show the mapped
        memory without a copy, and each part is read when it is first used. Writing to them does
        not change the file. The file must not be shortened while they live, and its checksums are
        not compared.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format.
    pickle.UnpicklingError
        If it names something that is not allowed.
    ValueError
        If `mmap` is asked for with a file object.
    DeviceNotAvailableError
        If a tensor was saved from a device that is not there; `map_location` helps.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> file = io.BytesIO()
    >>> tp.save([tp.zeros(2), "text"], file)
    >>> _ = file.seek(0)
    >>> tp.load(file)
    [tensor([0., 0.]), 'text']
    """
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError(
            f"load(): mmap=True needs the path of a file, got a {type(f).__name__} object"
        )
    with opened_for_reading(f) as (file, label):
        is_legacy = starts_here(file)
        if is_legacy and mmap:
            raise RuntimeError(
                f"load(): {label} has the format of torch before 1.6, which cannot be mapped; save it "
                "again, or load it without mmap=True"
            )
        reader = LegacyReader(file, label) if is_legacy else Reader(file, label, bool(mmap))
        memories = _Memories(reader, map_location, label)
        unpickler = Unpickler(memories.pickle(), label, memories.find)
        try:
            return unpickler.load()
        except (FileFormatError, DeviceNotAvailableError, pickle.UnpicklingError, MemoryError):
            raise
        except Exception as error:
            if error is memories.users_error:
                raise
            raise FileFormatError(
                f"load(): {label} is damaged: its data.pkl makes no sense ({error})"
            ) from error


class _Memories:
    """The memories of one archive, each made into a storage when the pickle first refers to it."""

    def __init__(
        self, reader: Reader | LegacyReader, map_location: MapLocation, label: str
    ) -> None:
        self._reader = reader
        self._map_location = map_location
        self._label = label
        self._storages: dict[str, Storage] = {}
        self.users_error: Exception | None = None

    def pickle(self) -> memoryview:
        """Return the pickle of the object."""
        return self._reader.read("data.pkl")

    def find(self, reference: Any) -> Storage:
        """Return the storage that a reference in the pickle means."""
        match reference:
            case (
                "storage",
                DType() | None as dtype,
                str(key),
                str(location),
                int(count),
                *whole,
            ) if "/" not in key and count >= 0 and whole in ([], [None]):
                pass
            case _:
                raise FileFormatError(
                    f"load(): {self._label} has an unknown reference {reprlib.repr(reference)}"
                )
        known = self._storages.get(key)
        if known is None:
            memory = self._reader.read(f"data/{key}")
            expected = count * (1 if dtype is None else dtype.itemsize)
            if len(memory) < expected:
                raise FileFormatError(
                    f"load(): {self._label} is damaged: memory {key} has {len(memory)} bytes "
                    f"instead of {expected}"
                )
            known = Storage(memory[:expected], self._reader.swapped, dtype)
            try:
                locate(known, location, self._map_location)
            except Exception as error:
                if self._map_location is not None:
                    self.users_error = error
                raise
            self._storages[key] = known
        return known
