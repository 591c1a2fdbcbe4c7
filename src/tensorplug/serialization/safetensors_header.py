"""The header of a safetensors file: names, dtypes, shapes and places of its tensors.

A file is eight bytes with the header's length, the header as JSON, and the tensors' bytes, one
after another and without holes (https://huggingface.co/docs/safetensors, "Format").
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tensorplug.core.device.dtypes import DType, dtype_named

from .archive import FileFormatError

#: The format's name of each dtype.
DTYPES: dict[str, DType] = {
    name: dtype_named(dtype)
    for name, dtype in {
        "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
        "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16",
        "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
        "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
        "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    }.items()
}  # fmt: skip
NAMES: dict[DType, str] = {dtype: name for name, dtype in DTYPES.items()}

_LENGTH = 8
_LONGEST = 100_000_000  # the format's limit of a header
_MOST_DIMENSIONS = 64  # NumPy's
_METADATA = "__metadata__"


class Entry(NamedTuple):
    """One tensor: its dtype and shape, and where in the file its bytes begin and end."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """What a file says of its contents."""

    entries: dict[str, Entry]
    metadata: dict[str, str] | None


def build(
    entries: Iterable[tuple[str, DType, tuple[int, ...]]], metadata: Mapping[str, str] | None
) -> bytes:
    """Return length and header for tensors that follow in this order."""
    header: dict[str, Any] = {}
    if metadata:
        header[_METADATA] = dict(metadata)
    end = 0
    for name, dtype, shape in entries:
        start, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": (start, end)}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of eight
    if len(text) > _LONGEST:
        raise ValueError(
            f"safetensors: a header of {len(text)} bytes is beyond the limit {_LONGEST}"
        )
    return len(text).to_bytes(_LENGTH, "little") + text


def parse(data: memoryview, label: str) -> Header:
    """Return the checked header of a file.

    Raises
    ------
    FileFormatError
        If anything in it is not as the format has it; the message says what.
    """
    try:
        return _parse(data)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"safetensors: {label}: {error}") from error


def _parse(data: memoryview) -> Header:
    length = int.from_bytes(data[:_LENGTH], "little")
    if len(data) < _LENGTH:
        raise ValueError(f"a file of {len(data)} bytes is too short for a header")
    if length > min(_LONGEST, len(data) - _LENGTH):
        raise ValueError(
            f"it tells of a header of {length} bytes, more than there are or than the format "
            f"allows: the file is cut short, or begins with {bytes(data[:8])!r} because it has "
            "another format"
        )
    text = bytes(data[_LENGTH : _LENGTH + length])
    if not text.startswith(b"{"):
        raise ValueError(f"the header begins with {text[:8]!r} instead of '{{'")
    header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    metadata = header.pop(_METADATA, None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all([isinstance(value, str) for value in metadata.values()])
    ):
        raise ValueError("its metadata is no mapping of text to text")
    begin = _LENGTH + length
    entries = {name: _entry(name, value, begin) for name, value in header.items()}
    _check_places(entries, begin, len(data))
    return Header(entries, metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name stands twice in the header")
    return result


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} in the header")


def _entry(name: str, value: Any, begin: int) -> Entry:
    shown = repr(name[:80])
    if not (isinstance(value, dict) and value.keys() >= {"dtype", "shape", "data_offsets"}):
        raise ValueError(f"tensor {shown} lacks dtype, shape or data_offsets")
    dtype = DTYPES.get(value["dtype"]) if isinstance(value["dtype"], str) else None
    if dtype is None:
        raise ValueError(
            f"tensor {shown} has the dtype {str(value['dtype'])[:40]!r}, which is none of "
            f"{', '.join(DTYPES)}"
        )
    shape, offsets = value["shape"], value["data_offsets"]
    if not (_sizes(shape) and _sizes(offsets) and len(offsets) == 2):
        raise ValueError(f"tensor {shown}: shape and data_offsets must be lists of sizes")
    if len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"tensor {shown} has {len(shape)} dimensions")
    start, end = offsets
    if end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"tensor {shown} of shape {shape} and dtype {value['dtype']} has {end - start} bytes"
        )
    return Entry(dtype, tuple(shape), begin + start, begin + end)


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all([type(n) is int and 0 <= n < 1 << 63 for n in value])


def _check_places(entries: dict[str, Entry], begin: int, size: int) -> None:
    reached = begin
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != reached:
            how = "overlaps the one before" if entry.start < reached else "leaves a hole before it"
            raise ValueError(f"tensor {name[:80]!r} {how}")
        reached = entry.end
    if reached != size:
        raise ValueError(f"its tensors end at byte {reached} but the file has {size}")
