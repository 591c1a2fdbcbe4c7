"""The file format: a zip archive of a pickle and the bytes of each memory, as torch writes it.

``<root>/data.pkl`` holds the object, ``<root>/data/<key>`` the memories, uncompressed and aligned
so that they can be mapped, ``<root>/byteorder`` the machine's order, and ``<root>/version`` the
format's number.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from tensorplug.core.errors import TensorplugError

from . import settings
from .settings import LoadEndianness

ROOT = "archive"
VERSION = 3
ALIGNMENT = 64
_HEADER = 30  # bytes of a zip entry's header before name and extra field
_PADDING_ID = b"FB"  # the extra field that torch uses for the same purpose
_CHUNK = 1 << 24  # bytes that are read or written at once where that takes a copy


# What zipfile raises for bytes that make no archive.
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


class FileFormatError(TensorplugError, RuntimeError):
    """A file is damaged, or not of the format asked for."""


class Writer:
    """Writes the records of one archive to a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.write("version", f"{VERSION}\n".encode())
        self.write("byteorder", sys.byteorder.encode())
        self.write(".format_version", b"1")
        self.write(".storage_alignment", str(ALIGNMENT).encode())

    def write(self, name: str, data: Any) -> None:
        """Write one record."""
        info = zipfile.ZipInfo(f"{ROOT}/{name}")
        start = self._zip.start_dir + _HEADER + len(info.filename)
        if len(data) >= 1 << 31:
            start += 20  # the sizes of a large entry take an extra field of their own
        padding = -(start + 4) % ALIGNMENT
        info.extra = _PADDING_ID + padding.to_bytes(2, "little") + b"Z" * padding
        is_skipped = name.startswith("data/") and settings.skips_data()
        with self._zip.open(info, "w", force_zip64=len(data) >= 1 << 31) as entry:
            if is_skipped:
                for start in range(0, len(data), _CHUNK):
                    entry.write(bytes(min(_CHUNK, len(data) - start)))
            else:
                entry.write(data)
        if is_skipped:
            info.CRC = 0  # not to be compared, as the bytes will be filled in

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._zip.close()  # writes the table of contents


class Reader:
    """Reads the records of one archive.

    Parameters
    ----------
    file : binary file
        The archive.
    label : str
        What messages call it.
    mapped : bool
        Map the memories instead of reading them, so that each page is read when it is first used,
        and copied when it is first written to, or written to the file, as `set_default_mmap_options`
        says. Their checksums are not compared then.

    Raises
    ------
    FileFormatError
        If the file is no archive of this format; the message says what it looks like.
    """

    def __init__(self, file: IO[bytes], label: str, mapped: bool = False) -> None:
        self._label = label
        start = file.read(512)
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise FileFormatError(f"load(): {label}: {diagnosis(start)} ({error})") from error
        self._map = map_file(file) if mapped else None
        names = self._zip.namelist()
        # Entries over the same bytes would let a small file ask for much memory.
        if sum([info.file_size for info in self._zip.infolist()]) > self._size:
            raise FileFormatError(
                f"load(): {label} is damaged: its records are compressed, overlap, or are longer "
                "than the file"
            )
        if len(set(names)) < len(names):
            raise FileFormatError(f"load(): {label} is damaged: two records have the same name")
        found = [name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")]
        if not found:
            raise FileFormatError(
                f"load(): {label} is a zip archive without data.pkl, so it holds no saved object"
            )
        self._root = found[0].removesuffix("data.pkl")
        if f"{self._root}constants.pkl" in names:
            raise FileFormatError(
                f"load(): {label} is a TorchScript program; only objects saved with save() can be "
                "loaded"
            )
        self.swapped = self._order() != sys.byteorder

    def _order(self) -> str:
        name = f"{self._root}byteorder"
        if name not in self._zip.namelist():
            # Files from before the record was added.
            known = settings.get_default_load_endianness() or LoadEndianness.LITTLE
            return sys.byteorder if known is LoadEndianness.NATIVE else known.name.lower()
        order = bytes(self.read("byteorder"))
        if order not in (b"little", b"big"):
            raise FileFormatError(
                f"load(): {self._label} is damaged: its byte order is {order[:16]!r}"
            )
        return order.decode()

    def read(self, name: str) -> memoryview:
        """Return the bytes of one record, which may be written to."""
        try:
            info = self._zip.getinfo(self._root + name)
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed")
            is_memory = name.startswith("data/")
            if self._map is not None and is_memory:
                return self._mapped(info, self._map)
            data = memoryview(bytearray(info.file_size))
            if not (is_memory and settings.skips_data()):
                self._read_into(data, info)
        except KeyError:
            raise FileFormatError(f"load(): {self._label} has no record {name!r}") from None
        except _DAMAGE as error:
            raise FileFormatError(
                f"load(): {self._label} is damaged in record {name!r}: {error}"
            ) from error
        return data

    def _read_into(self, data: memoryview, info: zipfile.ZipInfo) -> None:
        self._file.seek(info.header_offset)
        self._file.seek(_place(info, self._file.read(_HEADER)))
        fill(data, self._file)
        # Without checksums: what skip_data left out, and what torch writes where it is told so.
        if info.CRC and settings.get_crc32_options() and zlib.crc32(data) != info.CRC:
            raise ValueError("its checksum (CRC-32) is not that of its bytes")

    def _mapped(self, info: zipfile.ZipInfo, memory: memoryview) -> memoryview:
        start = info.header_offset
        start = _place(info, bytes(memory[start : start + _HEADER]) if start >= 0 else b"")
        if start + info.file_size > len(memory):
            raise EOFError("the record ends early")
        return memory[start : start + info.file_size]


def _place(info: zipfile.ZipInfo, header: bytes) -> int:
    """Return where the bytes of a record lie, of which the header is given."""
    if len(header) < _HEADER or not header.startswith(b"PK\x03\x04"):
        raise ValueError("it does not begin where the table of contents says")
    name, extra = struct.unpack("<HH", header[26:])
    return info.header_offset + _HEADER + int(name) + int(extra)


def fill(data: memoryview, file: IO[bytes]) -> None:
    """Read bytes from a file until a memory is full, without a copy where the file offers that."""
    readinto = getattr(file, "readinto", None)
    while len(data):
        if readinto is None:
            part = file.read(min(len(data), _CHUNK))
            count = len(part)
            data[:count] = part
        else:
            count = readinto(data)
        if not count:
            raise EOFError("the record ends early")
        data = data[count:]


def map_file(file: IO[bytes]) -> memoryview:
    """Return a file's bytes, mapped; writing to them copies the page and leaves the file alone.

    Where `set_default_mmap_options` says so, writing to them writes to the file.
    """
    if not settings.maps_shared():
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    with Path(file.name).open("r+b") as writable:
        return memoryview(mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE))


# How files of other formats begin, and what to say of them.
_FOREIGN = (
    (b"\x89PNG\r\n", "the file is a PNG image"),
    (b"\xff\xd8\xff", "the file is a JPEG image"),
    (b"\x89HDF\r\n", "the file has the format HDF5, as Keras writes it"),
    (b"\x93NUMPY", "the file is a NumPy array; read it with numpy.load"),
    (b"GGUF", "the file has the format GGUF"),
    (b"\x1f\x8b", "the file is compressed with gzip; unpack it first"),
    (b"PK", "the zip archive is cut short or damaged"),
)


def diagnosis(start: bytes) -> str:
    """Return what a file seems to be that begins with these 512 bytes."""
    if not start:
        return "the file is empty"
    for beginning, text in _FOREIGN:
        if start.startswith(beginning):
            return text
    if start[257:262] == b"ustar":
        return (
            "the file is a tar archive; if torch wrote it, it has the format of torch before version "
            "0.1.10; load it with torch and save it again"
        )
    if start.startswith(b"\x80"):
        return "the file is a bare pickle, which save() does not write"
    if start[8:9] == b"{":
        return "the file looks like safetensors; read it with tp.safetensors.load_file"
    return f"the file is no zip archive (it begins with {start[:8]!r})"


@contextmanager
def opened_for_writing(target: Any) -> Generator[IO[bytes], None, None]:
    """Yield a binary file for a path or file object; a path appears whole or not at all."""
    if hasattr(target, "write"):
        buffer = io.BytesIO()
        yield buffer
        target.write(buffer.getbuffer())
        if hasattr(target, "flush"):
            target.flush()
        return
    if not isinstance(target, (str, os.PathLike)):
        raise AttributeError(
            f"save(): expected a path or a file, got {type(target).__name__!r} object, which has no "
            "attribute 'write'"
        )
    path = Path(os.fspath(target))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save(): there is no directory {str(path.parent)!r}")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _give_usual_mode(name, path)
        Path(name).replace(path)
        _sync_directory(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    """Let the new name survive a power cut, too, where the system has a way to say so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):  # a directory may not be readable, and some file systems refuse it
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _give_usual_mode(name: str, path: Path) -> None:
    """Give the temporary file, which only its owner may read, the mode that open() would have."""
    if path.exists():
        mode = path.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    Path(name).chmod(mode)


def _is_seekable(source: Any) -> bool:
    if hasattr(source, "seekable"):
        return bool(source.seekable())
    return hasattr(source, "seek") and hasattr(source, "tell")


@contextmanager
def opened_for_reading(source: Any) -> Generator[tuple[IO[bytes], str], None, None]:
    """Yield a binary file for a path or file object, and what to call it in messages."""
    if hasattr(source, "read"):
        label = str(getattr(source, "name", "the file object"))
        yield (source if _is_seekable(source) else io.BytesIO(source.read())), label
        return
    if not isinstance(source, (str, os.PathLike)):
        raise AttributeError(
            f"load(): expected a path or a file, got {type(source).__name__!r} object, which has no "
            "attribute 'read'"
        )
    path = Path(os.fspath(source))
    with path.open("rb") as file:
        yield file, repr(str(path))
