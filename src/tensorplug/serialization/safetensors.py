"""Tensors by name in safetensors files, written and read as the package of that name does."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU, Device
from tensorplug.core.tensor import creation, host_memory
from tensorplug.core.tensor.shapes import contiguous_strides

from .archive import FileFormatError, map_file, opened_for_reading, opened_for_writing
from .safetensors_header import NAMES, Entry, Header, build, parse
from .storages import placed

# --- writing ----------------------------------------------------------------------------------


def save_file(
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors to a safetensors file, which appears whole or not at all.

    Parameters
    ----------
    tensors : mapping from str to Tensor
        Contiguous tensors with memory of their own, as in a state dict.
    filename : path
        Where to; a file there is replaced.
    metadata : mapping from str to str, optional
        Text to go along.

    Raises
    ------
    ValueError
        If something is no tensor, is not contiguous, or is named ``__metadata__``.
    RuntimeError
        If tensors share memory, which the format cannot say; :func:`save_model` leaves them out.
    TypeError
        If the format has no name for a dtype, or a name or metadata is no text.

    Examples
    --------
    >>> import tempfile
    >>> import tensorplug as tp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tp.safetensors.save_file({"w": tp.ones(2)}, f"{folder}/model.safetensors")
    ...     tp.safetensors.load_file(f"{folder}/model.safetensors")
    {'w': tensor([1., 1.])}
    """
    parts = _parts(tensors, metadata)
    with opened_for_writing(filename) as file:
        for part in parts:
            file.write(part)


def save(tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return tensors in the safetensors format; arguments and errors as in :func:`save_file`."""
    file = io.BytesIO()
    for part in _parts(tensors, metadata):
        file.write(part)
    return file.getvalue()


def save_model(
    model: Any,
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write a module's state dict, each shared tensor once.

    Parameters
    ----------
    model : Module
        Its parameters and buffers are written.
    filename : path
        Where to.
    metadata : mapping from str to str, optional
        Text to go along; the names left out are added, each with the name that was kept.
    force_contiguous : bool
        Write copies of what is not contiguous, rather than raise.

    Raises
    ------
    ValueError, RuntimeError, TypeError
        As :func:`save_file`.
    """
    state = dict(model.state_dict())
    metadata = dict(metadata or {})
    for dropped, kept in _duplicates(state).items():
        metadata.setdefault(dropped, kept)
        del state[dropped]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(state, filename, metadata)


def _parts(tensors: Mapping[Any, Any], metadata: Mapping[Any, Any] | None) -> list[Any]:
    """Return header and data to write, checked."""
    for name, text in (metadata or {}).items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError(f"safetensors: metadata must map text to text, got {name!r}: {text!r}")
    for name, tensor in tensors.items():
        _check(name, tensor)
    for (_, end, name), (start, _, other) in pairwise(sorted(_extents(tensors))):
        if start < end:
            raise RuntimeError(
                f"safetensors: tensors {name!r} and {other!r} share memory, which the format cannot "
                "say; clone one, or write a module with save_model, which keeps one of them"
            )
    # Large elements first, so that each tensor begins at a multiple of its element's size.
    order = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header = build(((n, t.dtype, tuple(t.shape)) for n, t in order), metadata)
    return [header, *(host_memory.little_endian_bytes(tensor) for _, tensor in order)]


def _check(name: Any, tensor: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"safetensors: names must be str, got {name!r}")
    if name == "__metadata__":
        raise ValueError("safetensors: no tensor can be named '__metadata__'")
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"safetensors: {name!r} is a {type(tensor).__name__}, but only tensors can be written"
        )
    if tensor.dtype not in NAMES:
        raise TypeError(
            f"safetensors: the format has no {tensor.dtype.name}, the dtype of {name!r}; it has "
            f"{', '.join(dtype.name for dtype in NAMES)}"
        )
    if tensor.is_meta:
        raise ValueError(f"safetensors: {name!r} is on 'meta', so it has no data")
    if not tensor.is_contiguous():
        raise ValueError(
            f"safetensors: you are trying to save a non contiguous tensor, {name!r}; call "
            ".contiguous() on it first"
        )


def _extents(tensors: Mapping[str, Any]) -> list[tuple[tuple[str, int], tuple[str, int], str]]:
    """Return where each tensor's memory begins and ends, where that can be known."""
    extents = []
    for name, tensor in tensors.items():
        where, start = str(tensor.device), _address(tensor)
        size = tensor.numel() * tensor.dtype.itemsize
        if start and size:
            extents.append(((where, start), (where, start + size), name))
    return extents


def _address(tensor: Any) -> int:
    """Return a tensor's address to compare it: unlike `data_ptr()` it lets nobody write to the memory."""
    address: int = tensor._key.runtime.data_pointer(tensor._array)
    return address


def _duplicates(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that show the same memory as another, with the name to keep."""
    kept: dict[Any, str] = {}
    dropped: dict[str, str] = {}
    for name, tensor in sorted(state.items()):
        if not _address(tensor) or not tensor.numel():
            continue
        identity = (str(tensor.device), _address(tensor), tuple(tensor.shape), tensor.stride())
        first = kept.setdefault(identity, name)
        if first != name:
            dropped[name] = first
    return dropped


# --- reading ----------------------------------------------------------------------------------


def load_file(filename: str | os.PathLike[str], device: Device | str = "cpu") -> dict[str, Any]:
    """Return all tensors of a safetensors file.

    Parameters
    ----------
    filename : path
        Where from.
    device : Device or str
        Where to.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format.
    """
    with opened_for_reading(filename) as (file, label):
        data = bytearray(os.fstat(file.fileno()).st_size)
        size = file.readinto(data)  # type: ignore[attr-defined]
    return _read_all(memoryview(data)[:size], label, device)


def load(data: bytes) -> dict[str, Any]:
    """Return the tensors in bytes of the safetensors format; errors as :func:`load_file`."""
    return _read_all(memoryview(bytearray(data)), "the data", "cpu")


def load_model(
    model: Any,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: Device | str = "cpu",
) -> tuple[list[str], list[str]]:
    """Copy a file of :func:`save_model` into a module.

    Parameters
    ----------
    model : Module
        Takes the values.
    filename : path
        Where from.
    strict : bool
        Raise if names are missing or unexpected.
    device : Device or str
        Where the tensors are read to before they are copied.

    Returns
    -------
    tuple of list of str
        Names that were missing in the file, and names that the module does not have.

    Raises
    ------
    RuntimeError
        If names do not fit and `strict` is set, or shapes do not fit.
    """
    state = load_file(filename, device)
    own = model.state_dict()
    for dropped, kept in _duplicates(own).items():
        for missing, there in ((dropped, kept), (kept, dropped)):
            if missing not in state and there in state:
                state[missing] = state[there]
    missing, unexpected = model.load_state_dict(state, strict=strict)
    return list(missing), list(unexpected)


class safe_open:
    """A safetensors file whose tensors are read when they are asked for.

    The file is mapped: on the CPU, a tensor or slice shows the mapped memory without a copy, and
    writing to it does not change the file. The file must not be shortened while tensors live.

    Parameters
    ----------
    filename : path
        Where from.
    framework : str, optional
        Accepted for compatibility.
    device : Device or str
        Where tensors go.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format.

    Examples
    --------
    >>> import tempfile
    >>> import tensorplug as tp
    >>> folder = tempfile.TemporaryDirectory()
    >>> tp.safetensors.save_file({"w": tp.arange(6).reshape(3, 2)}, f"{folder.name}/w")
    >>> with tp.safetensors.safe_open(f"{folder.name}/w") as file:
    ...     file.keys(), file.get_slice("w")[1:2]
    (['w'], tensor([[2, 3]]))
    >>> folder.cleanup()
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str | None = None,
        device: Device | str = "cpu",
    ) -> None:
        self._device = Device(device)
        with opened_for_reading(filename) as (file, label):
            start = file.read(8)  # an empty file cannot be mapped
            self._data = map_file(file) if start else memoryview(start)
            self._header: Header | None = parse(self._data, label)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._header = None
        self._data = memoryview(b"")

    def _open(self) -> Header:
        if self._header is None:
            raise FileFormatError("safetensors: the file is closed")
        return self._header

    def keys(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return sorted(self._open().entries)

    def offset_keys(self) -> list[str]:
        """Return the names in the order in which the tensors lie in the file."""
        entries = self._open().entries
        return sorted(entries, key=lambda name: (entries[name].start, name))

    def metadata(self) -> dict[str, str] | None:
        """Return the text that came along, or None."""
        return self._open().metadata

    def get_tensor(self, name: str) -> Any:
        """Return a tensor.

        Raises
        ------
        FileFormatError
            If there is none of that name.
        """
        return placed(_tensor(self._data, self._entry(name)), self._device)

    def get_tensors(self) -> dict[str, Any]:
        """Return all tensors by name."""
        return {name: self.get_tensor(name) for name in self.keys()}

    def get_slice(self, name: str) -> SafeSlice:
        """Return a tensor of which only the part that is indexed will be read."""
        return SafeSlice(self._data, self._entry(name), self._device)

    def _entry(self, name: str) -> Entry:
        entries = self._open().entries
        if name not in entries:
            raise FileFormatError(
                f"safetensors: there is no tensor {name!r}; there are {', '.join(list(entries)[:8])}"
                f"{' …' if len(entries) > 8 else ''}"
            )
        return entries[name]


class SafeSlice:
    """A tensor in a file, to be indexed; what :meth:`safe_open.get_slice` returns."""

    def __init__(self, data: memoryview, entry: Entry, device: Device) -> None:
        self._data = data
        self._entry = entry
        self._device = device

    def get_shape(self) -> list[int]:
        """Return the whole tensor's shape."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """Return the format's name of the dtype, such as ``"F32"``."""
        return NAMES[self._entry.dtype]

    def __getitem__(self, index: Any) -> Any:
        return placed(_tensor(self._data, self._entry)[index], self._device)


def _read_all(data: memoryview, label: str, device: Device | str) -> dict[str, Any]:
    where = Device(device)
    entries = parse(data, label).entries
    return {name: placed(_tensor(data, entry), where) for name, entry in sorted(entries.items())}


def _tensor(data: memoryview, entry: Entry) -> Any:
    if entry.start == entry.end:
        return creation.empty_of(entry.shape, entry.dtype, CPU)
    memory = host_memory.from_bytes(
        data[entry.start : entry.end], entry.dtype, sys.byteorder == "big"
    )
    return creation.show_memory(memory, entry.shape, contiguous_strides(entry.shape), 0)
