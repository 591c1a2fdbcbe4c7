"""Versions that compare as numbers do, not as texts: ``"2.10" > "2.9"``."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_PARTS = re.compile(r"(\d+(?:\.\d+)*)[-_.]?(a|b|c|rc|dev|post)?\D*(\d+)?")
_ORDER = {"dev": -4, "a": -3, "b": -2, "c": -1, "rc": -1, None: 0, "post": 1}


class TorchVersion(str):
    """A version, as text that compares with versions, texts and sequences of numbers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> version = tp.torch_version.TorchVersion("2.10.0+cpu")
    >>> version > "2.9.1", version >= (2, 10), version == "2.10.0+cpu"
    (True, True, True)
    """

    __slots__ = ()

    def _compare(self, other: Any) -> int | None:
        own = _key(self)
        try:
            text = other if isinstance(other, str) else ".".join([str(part) for part in other])
        except TypeError:
            return None
        theirs = _key(text)
        if own is None or theirs is None:
            return (str(self) > str(text)) - (str(self) < str(text))
        return (own > theirs) - (own < theirs)

    def __gt__(self, other: Any) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order > 0

    def __lt__(self, other: Any) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order < 0

    def __ge__(self, other: Any) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order >= 0

    def __le__(self, other: Any) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order <= 0

    def __eq__(self, other: object) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order == 0

    def __ne__(self, other: object) -> bool:
        order = self._compare(other)
        return NotImplemented if order is None else order != 0

    __hash__ = str.__hash__


def _key(version: str) -> tuple[Any, ...] | None:
    """Return what versions compare by (PEP 440, without epochs), None of a text that is none."""
    public, _, local = version.partition("+")
    found = _PARTS.match(public)
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers, _ORDER[found[2]], int(found[3] or 0), local
