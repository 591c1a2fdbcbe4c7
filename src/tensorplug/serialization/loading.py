"""Reading objects: the memories of an archive, and where their tensors go."""

from __future__ import annotations

import os
import pickle
import reprlib
from typing import Any

from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch.failed_calls import out_of_memory
from tensorplug.core.errors import DeviceNotAvailableError

from .archive import FileFormatError, Reader, opened_for_reading
from .known_values import KnownValues
from .legacy import LegacyReader, starts_here, text_of
from .storages import LoadedStorage, MapLocation, Storage, StoragePart, locate
from .unpickling import Refused, Unpickler, explained, unrestricted, unsafe_names


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
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
    pickle_module : module, optional
        Read the file with this module's ``Unpickler``, such as ``pickle``'s, without any restriction,
        as torch does: **a file can then run any code**. Only for files whose author you trust.
    weights_only : bool, optional
        Which names a file may have. True, the default: those of tensors, plain containers and what
        :func:`add_safe_globals` added. False: also those of common values (NumPy's arrays, scalars
        and generators, paths, dates, namespaces, ``functools.partial`` …), of torch's modules,
        optimizers and functions, and of classes that the program has imported. Objects are then made
        without ``__init__``, but a class's own ``__new__`` and ``__setstate__`` run; still no
        function is called that the file's author chooses. What is refused says which call allows it.
        If the environment variable ``TENSORPLUG_TRUST_FILES`` is 1, False stands for
        ``pickle_module=pickle``.
    mmap : bool, optional
        Map the file, given as a path, instead of reading it: tensors on the CPU show the mapped
        memory without a copy, and each part is read when it is first used. Writing to them does
        not change the file. The file must not be shortened while they live, and its checksums are
        not compared.
    **pickle_load_args
        ``encoding`` and ``errors``: how strings are read that Python 2 wrote; ``fix_imports``.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format.
    pickle.UnpicklingError
        If it names something that is not allowed; the message holds the calls that allow it.
    RuntimeError
        If `weights_only` is True and a `pickle_module` is given.
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
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "load(): Can not safely load weights when explicit pickle_module is specified; leave out "
            "weights_only=True or the pickle_module"
        )
    if weights_only is False and os.environ.get("TENSORPLUG_TRUST_FILES") == "1":
        pickle_module = pickle_module or pickle
    for name in pickle_load_args:
        if name not in ("encoding", "errors", "fix_imports"):
            raise TypeError(f"load() got an unexpected keyword argument {name!r}")
    with opened_for_reading(f) as (file, label):
        is_legacy = starts_here(file)
        if is_legacy and mmap:
            raise RuntimeError(
                f"load(): {label} has the format of torch before 1.6, which cannot be mapped; save it "
                "again, or load it without mmap=True"
            )
        reader = LegacyReader(file, label) if is_legacy else Reader(file, label, bool(mmap))
        memories = _Memories(reader, map_location, label)
        values = KnownValues() if weights_only is False else None
        try:
            if pickle_module is not None:
                return unrestricted(
                    pickle_module, memories.pickle(), memories.find, pickle_load_args
                )
            return Unpickler(
                memories.pickle(), label, memories.find, values, pickle_load_args
            ).load()
        except Refused as error:
            source = "f" if hasattr(f, "read") else repr(os.fspath(f))
            raise explained(error, memories.pickle(), source, values) from None
        except MemoryError as error:
            raise out_of_memory("load", error) from None
        except (FileFormatError, DeviceNotAvailableError, pickle.UnpicklingError):
            raise
        except Exception as error:
            if error is memories.users_error or pickle_module is not None:
                raise
            raise FileFormatError(
                f"load(): {label} is damaged: its data.pkl makes no sense ({error})"
            ) from error


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return what a file names that :func:`load` refuses, without making any of it.

    Parameters
    ----------
    f : path or file object
        The file.

    Examples
    --------
    >>> import fractions, io
    >>> import tensorplug as tp
    >>> file = io.BytesIO()
    >>> tp.save([fractions.Fraction(1, 2)], file)
    >>> _ = file.seek(0)
    >>> tp.serialization.get_unsafe_globals_in_checkpoint(file)
    ['fractions.Fraction']
    """
    with opened_for_reading(f) as (file, label):
        reader = LegacyReader(file, label) if starts_here(file) else Reader(file, label)
        try:
            return unsafe_names(reader.read("data.pkl"))
        except FileFormatError:
            raise
        except Exception as error:
            raise FileFormatError(f"load(): {label} is damaged: {error}") from error


class _Memories:
    """The memories of one archive, each made into a storage when the pickle first refers to it."""

    def __init__(
        self, reader: Reader | LegacyReader, map_location: MapLocation, label: str
    ) -> None:
        self._reader = reader
        self._map_location = map_location
        self._label = label
        self._storages: dict[str, LoadedStorage] = {}
        self._parts: dict[tuple[str, str], LoadedStorage] = {}
        self.users_error: Exception | None = None

    def pickle(self) -> memoryview:
        """Return the pickle of the object."""
        return self._reader.read("data.pkl")

    def find(self, reference: Any) -> Any:
        """Return the storage that a reference in the pickle means."""
        match text_of(reference):
            case ("module", cls, str() | None, str() | None):  # the old format adds the source
                return cls
            case (
                "storage",
                DType() | None as dtype,
                str(key),
                str(location),
                int(count),
                *whole,
            ) if "/" not in key and count >= 0 and len(whole) < 2:
                part = whole[0] if whole else None
            case _:
                raise self._unknown(reference)
        known = self._storages.get(key)
        if known is None:
            memory = self._reader.read(f"data/{key}")
            expected = count * (1 if dtype is None else dtype.itemsize)
            if len(memory) < expected:
                raise FileFormatError(
                    f"load(): {self._label} is damaged: memory {key} has {len(memory)} bytes "
                    f"instead of {expected}"
                )
            source = Storage(memory[:expected], self._reader.swapped, dtype)
            try:
                locate(source, location, self._map_location)
            except Exception as error:
                if self._map_location is not None:
                    self.users_error = error
                raise
            known = self._storages[key] = LoadedStorage(source)
        if part is None:
            return known
        return self._part(known, key, count, part)

    def _part(self, known: LoadedStorage, key: str, total: int, part: Any) -> LoadedStorage:
        """Return the storage that is a part of another: torch before 0.4 had such."""
        match text_of(part):
            case (str(name), int(start), int(size)) if (
                min(start, size) >= 0 and start + size <= total
            ):
                place = key, name
                if place not in self._parts:
                    self._parts[place] = LoadedStorage(StoragePart(known.source, start, size))
                return self._parts[place]
            case _:
                raise self._unknown(part)

    def _unknown(self, reference: Any) -> FileFormatError:
        return FileFormatError(
            f"load(): {self._label} has an unknown reference {reprlib.repr(reference)}"
        )
