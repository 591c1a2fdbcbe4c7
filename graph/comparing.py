"""Comparing what Python's objects hold with what they held: before each call of a captured program."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

__all__ = ["alike", "holds_same"]

MAPPINGS = (dict, MappingProxyType)
#: Of these an equal one serves as well.
ATOMS: frozenset[Any] = frozenset((int, float, complex, bool, str, bytes, type(None), range))


def holds_same(containers: list[Any], sizes: list[int], held: list[Any]) -> bool:
    """Return whether containers hold the very objects that they held.

    Parameters
    ----------
    containers : list
        Mappings and others.
    sizes : list of int
        How many items each one had.
    held : list
        Their items one after another; of each mapping all keys, then all values.
    """
    at = 0
    for number, container in enumerate(containers):
        size = sizes[number]
        if len(container) != size:
            return False
        if not size:
            continue
        if type(container) is dict:
            table = container
            for key, value in table.items():
                if key is not held[at] or value is not held[at + size]:
                    return False
                at += 1
            at += size
            continue
        for item in container:
            if item is not held[at]:
                return False
            at += 1
        if isinstance(container, MAPPINGS):
            for item in container.values():
                if item is not held[at]:
                    return False
                at += 1
    return True


def alike(now: list[Any], held: list[Any]) -> bool:
    """Return whether lists hold the same objects, or equal numbers and strings."""
    return len(now) == len(held) and all(
        [
            a is b or (type(a) is type(b) and type(a) in ATOMS and repr(a) == repr(b))
            for a, b in zip(now, held, strict=True)
        ]
    )
