"""Devices: a type and an index."""

from __future__ import annotations

import builtins
from typing import Any, Self

from ..contexts import Context, declare, thread

_INTERNED: dict[tuple[str, int | None], Device] = {}
_SPELT: dict[str, Device] = {}  # by whole strings, such as "type:1"


class Device(Context):
    """Where a tensor's data lives: ``tp.device("cpu")``, ``tp.device("cuda", 1)``, ``tp.device("meta")``.

    Creating one loads no plugin; the first tensor on it does. In a ``with`` block a device is the one on
    which this thread makes tensors where none is named.

    Parameters
    ----------
    type : str
        A device type, optionally with an index as ``"type:1"``; or another device.
    index : int, optional
        Which device of the type.

    Raises
    ------
    RuntimeError
        If the string has another form, or the index is negative.

    Examples
    --------
    >>> Device("meta", 0)
    device(type='meta', index=0)
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, type: str | Device | int, index: int | None = None) -> Device:  # noqa: PYI034  interned
        """Return the one device of a type and index."""
        if index is None and builtins.type(type) is str:
            spelt = _SPELT.get(type)
            if spelt is not None:
                return spelt
        given: Any = type
        if isinstance(type, Device):
            if index is None:
                return type
            raise RuntimeError(f"device(): an index was given twice: {type!r} and {index!r}")
        if index is not None and builtins.type(index) is not int:
            if isinstance(index, bool) or not hasattr(index, "__index__"):
                raise TypeError(
                    "device(): argument 'index' (position 2) must be int, not "
                    f"{builtins.type(index).__name__}"
                )
            index = index.__index__()
        if isinstance(type, int) and type < 0:
            raise RuntimeError(f"device(): Device index must not be negative, got {type}")
        if isinstance(type, bool) or not isinstance(type, str):
            raise TypeError(
                f"device(): expected a device or a string such as 'cpu' or 'type:0', got {type!r}"
            )
        if not type:
            raise RuntimeError("device(): Device string must not be empty")
        name, colon, digits = type.partition(":")
        if colon:
            if index is not None:
                raise RuntimeError(
                    "device(): type (string) must not include an index because index was passed explicitly: "
                    f"{type!r} and {index!r}"
                )
            if not digits.isdecimal() or (len(digits) > 1 and digits[0] == "0"):
                raise RuntimeError(f"Invalid device string: {type!r}; expected 'type' or 'type:N'")
            index = int(digits)
        if not name.isidentifier():
            raise RuntimeError(f"Invalid device string: {type!r}; expected 'type' or 'type:N'")
        if index is not None and index < 0:
            raise RuntimeError(f"device(): Device index must not be negative, got {index}")
        known = _INTERNED.get((name, index))
        if known is None:
            known = object.__new__(cls)
            object.__setattr__(known, "type", name)
            object.__setattr__(known, "index", index)
            known = _INTERNED.setdefault((name, index), known)
        if colon or index is None:
            _SPELT[given] = known
        return known

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"device is immutable: cannot set {name!r}")

    def _changes(self) -> dict[str, Any]:
        return {"device": self}

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type={self.type!r})"
        return f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, tuple[str, int | None]]:
        return Device, (self.type, self.index)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self


def unlisted(device: Device) -> Device:
    """Return a device that looks the same but is another: where tensors of a removed device live."""
    twin = object.__new__(Device)
    object.__setattr__(twin, "type", device.type)
    object.__setattr__(twin, "index", device.index)
    return twin


CPU = Device("cpu")
META = Device("meta")


# The device on which a thread makes tensors where none is named.
declare(device=CPU)
default = thread
