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
from .scanning import Scanner
from .unpickling import Refused, Unpickler, names_of_storages

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_STARTS = tuple([pickle.dumps(MAGIC, protocol) for protocol in range(2, 6)])


# What a pickle or a number that is cut short or changed raises.
_DAMAGE = (
    AttributeError, EOFError, IndexError, KeyError, OverflowError, struct.error, TypeError, ValueError,
    RecursionError, pickle.UnpicklingError,
)  # fmt: skip


def write(
    file: IO[bytes], object_pickle: Any, memories: list[tuple[Any, int]], protocol: int
) -> None:
    """Write a pickled object and its memories, each with the number of its elements."""
    machine = {
        "protocol_version": VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 8},
    }
    for part in (MAGIC, VERSION, machine):
        file.write(pickle.dumps(part, protocol))
    file.write(object_pickle)
    file.write(pickle.dumps([str(key) for key in range(len(memories))], protocol))
    for memory, count in memories:
        file.write(struct.pack("<q", count))
        file.write(memory)


def starts_here(file: IO[bytes]) -> bool:
    """Return whether an object in this format begins at the file's position, which is kept."""
    position = file.tell()
    start = file.read(max(map(len, _STARTS)))
    file.seek(position)
    return start.startswith(_STARTS)


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
        except Refused:
            raise
        except _DAMAGE as error:
            raise FileFormatError(f"load(): {label} is damaged: {error}") from error
        file.seek(start + self._end)

    def _parse(self, stream: _Stream, whole: memoryview) -> None:
        magic, version = [Unpickler(stream, self._label, _no_memory).load() for _ in range(2)]
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError(f"its format is not number {VERSION}")
        machine = Unpickler(stream, self._label, _no_memory).load()
        self.swapped = machine["little_endian"] != (sys.byteorder == "little")
        # Where a memory lies depends on the size of the others' elements, which the object tells: it is
        # read twice, now without the memories' contents.
        begin = stream.position
        sizes = _Sizes(len(whole))
        Scanner(stream, sizes.find, names_of_storages).load()
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

    def find(self, reference: Any) -> None:
        """Note the size of a memory that the object refers to."""
        match text_of(reference):
            case ("module", _, str() | None, str() | None):  # a class and its source
                return
            case ("storage", DType() | None as dtype, str(key), str(), int(count), _):
                pass
            case _:
                raise ValueError(f"it has an unknown reference {reprlib.repr(reference)}")
        if key not in self.of_element:
            size = 1 if dtype is None else dtype.itemsize
            self._left -= count * size
            if count < 0 or self._left < 0:
                raise EOFError(f"memory {key} ends early")
            self.of_element[key] = size


def text_of(reference: Any) -> Any:
    """Return a reference whose words are text: Python 2 wrote bytes, and ``encoding="bytes"`` keeps them."""
    if not isinstance(reference, tuple):
        return reference
    return tuple([part.decode() if isinstance(part, bytes) else part for part in reference])


def _no_memory(reference: Any) -> Any:
    raise ValueError("it has a memory where none is expected")
