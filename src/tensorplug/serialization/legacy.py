"""The file format of torch before 1.6: pickles one after another, then the bytes of each memory.

In turn: a magic number, the format's number, the machine (three pickles), the object, the keys of its
memories (two more), and for each key 8 bytes, how many elements there are, and the elements. Nothing
says where the object ends but the object itself, so several of them can stand in one file.
"""

from __future__ import annotations

import os
import pickle
import reprlib
import struct
import sys
from typing import IO, Any

from tensorplug.core.device.dtypes import DType

from .archive import FileFormatError
from .storages import Storage
from .unpickling import Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_PROTOCOL = 2
START = pickle.dumps(MAGIC, _PROTOCOL)
_HEADER = START + pickle.dumps(VERSION, _PROTOCOL)


def write(file: IO[bytes], object_pickle: Any, memories: list[tuple[Any, int]]) -> None:
    """Write a pickled object and its memories, each with the number of its elements."""
    machine = {
        "protocol_version": VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 8},
    }
    file.write(_HEADER)
    file.write(pickle.dumps(machine, _PROTOCOL))
    file.write(object_pickle)
    file.write(pickle.dumps([str(key) for key in range(len(memories))], _PROTOCOL))
    for memory, count in memories:
        file.write(struct.pack("<q", count))
        file.write(memory)


def starts_here(file: IO[bytes]) -> bool:
    """Return whether an object in this format begins at the file's position, which is kept."""
    position = file.tell()
    start = file.read(len(START))
    file.seek(position)
    return start == START


class LegacyReader:
    """Reads one object and its memories, and leaves the file's position behind them.

    Parameters
    ----------
    file : binary file
        At the magic number.
    label : str
        What messages call it.

    Raises
    ------
    FileFormatError
        If the file is damaged.
    """

    def __init__(self, file: IO[bytes], label: str) -> None:
        self._label = label
        start = file.tell()
        size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        data = bytearray(size)
        whole = memoryview(data)
        readinto = getattr(file, "readinto", None)
        if readinto is None or readinto(whole) != size:
            file.seek(start)
            whole[:] = file.read()
        try:
            self._parse(_Stream(data), whole)
        except (EOFError, IndexError, KeyError, struct.error, TypeError, ValueError) as error:
            raise FileFormatError(f"load(): {label} is damaged: {error}") from error
        file.seek(start + self._end)

    def _parse(self, stream: _Stream, whole: memoryview) -> None:
        if stream.read(len(_HEADER)) != _HEADER:
            raise ValueError(f"its format is not number {VERSION}")
        machine = Unpickler(stream, self._label, _no_memory).load()
        self.swapped = machine["little_endian"] != (sys.byteorder == "little")
        # Where a memory lies depends on the size of the others' elements, which the object tells: it is
        # read twice, now without the memories' contents.
        begin = stream.position
        sizes = _Sizes(len(whole))
        Unpickler(stream, self._label, sizes.find).load()
        self._object = whole[begin : stream.position]
        self._memories: dict[str, memoryview] = {}
        keys = Unpickler(stream, self._label, _no_memory).load()
        order = "<" if machine["little_endian"] else ">"
        place = stream.position
        for key in keys:
            (count,) = struct.unpack(f"{order}q", whole[place : place + 8])
            place += 8
            end = place + count * sizes.of_element[key]
            if count < 0 or end > len(whole):
                raise EOFError(f"memory {key} ends early")
            self._memories[key] = whole[place:end]
            place = end
        self._end = place

    def read(self, name: str) -> memoryview:
        """Return the bytes of one record, under the name that it has in an archive."""
        if name == "data.pkl":
            return self._object
        key = name.removeprefix("data/")
        if key not in self._memories:
            raise FileFormatError(f"load(): {self._label} has no memory {key!r}")
        return self._memories[key]


class _Stream:
    """What an unpickler reads from, without a copy of what follows."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self.position = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        found = bytes(self._data[self.position : self.position + size])
        self.position += len(found)
        return found

    def readline(self) -> bytes:
        """Return the bytes up to the end of the line."""
        end = self._data.find(b"\n", self.position) + 1
        return self.read((end or len(self._data)) - self.position)


class _Sizes:
    """The sizes of the memories' elements, from a first reading of the object."""

    def __init__(self, most: int) -> None:
        self.of_element: dict[str, int] = {}
        self._left = most
        self._empty: dict[str, Storage] = {}

    def find(self, reference: Any) -> Storage:
        """Return a memory of zeros in place of the one that is meant."""
        match reference:
            case ("storage", DType() | None as dtype, str(key), str(), int(count), None):
                pass
            case _:
                raise ValueError(f"it has an unknown reference {reprlib.repr(reference)}")
        if key not in self._empty:
            size = 1 if dtype is None else dtype.itemsize
            self._left -= count * size
            if count < 0 or self._left < 0:
                raise EOFError(f"memory {key} ends early")
            self.of_element[key] = size
            self._empty[key] = Storage(memoryview(bytearray(count * size)), False, dtype)
        return self._empty[key]


def _no_memory(reference: Any) -> Any:
    raise ValueError("it has a memory where none is expected")
