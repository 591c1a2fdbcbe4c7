"""Memory whose values are kept elsewhere, such as in compiled programs: whether it was handed out since.

Writes through tensors count versions. Whoever gets hold of the memory itself (``.data``, ``.numpy()``,
DLPack, addresses) may write without anybody noticing, so values of such memory are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: By the id of the array that has the memory: how many keep its values, and whether it was handed out.
watched: dict[int, list[int]] = {}


class _HandedOut:
    """How often memory was handed out while it was watched."""

    count = 0


handed_out = _HandedOut()


def _owner(array: Any) -> int:
    base = getattr(array, "base", None)
    return id(base) if type(base) is type(array) else id(array)


def watch(arrays: Iterable[Any]) -> list[int]:
    """Watch arrays that stay alive until :func:`unwatch` is called with what is returned."""
    keys = [_owner(array) for array in arrays]
    for key in keys:
        watched.setdefault(key, [0, 0])[0] += 1
    return keys


def unwatch(keys: Iterable[int]) -> None:
    """End what :func:`watch` began."""
    for key in keys:
        entry = watched[key]
        entry[0] -= 1
        if not entry[0]:
            del watched[key]


def hand_out(array: Any) -> None:
    """Note that somebody gets hold of an array's memory."""
    entry = watched.get(_owner(array))
    if entry is not None:
        entry[1] = 1
        handed_out.count += 1


def is_handed_out(array: Any) -> bool:
    """Return whether somebody got hold of an array's memory while it was watched."""
    entry = watched.get(_owner(array))
    return entry is not None and entry[1] == 1
