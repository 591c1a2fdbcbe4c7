"""Memory whose values are kept elsewhere, such as in compiled programs: whether it was handed out since.

Writes through tensors count versions. Whoever gets hold of the memory itself (``.data``, ``.numpy()``,
DLPack, addresses) may write without anybody noticing, so values of such memory are not kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

#: By the id of the array that has the memory: how many keep its values, and whether it was handed out.
watched: dict[int, list[int]] = {}


#: Arrays over memory that came from elsewhere, and that its owner may write at any time, by id.
taken_in: dict[int, weakref.ref[Any]] = {}


class _HandedOut:
    """How often memory was handed out while it was watched."""

    count = 0


handed_out = _HandedOut()


def _owner(array: Any) -> int:
    return id(_owning(array))


def _owning(array: Any) -> Any:
    base = getattr(array, "base", None)
    return base if type(base) is type(array) else array


def take_in(array: Any) -> None:
    """Note that an array shows memory that somebody else has, too."""
    owner = _owning(array)
    key = id(owner)
    if key not in taken_in:
        try:
            taken_in[key] = weakref.ref(owner, partial(_forget, key))
        except TypeError:  # of a class that takes no note of who refers to it
            return


def _forget(key: int, reference: weakref.ref[Any]) -> None:
    if taken_in.get(key) is reference:
        del taken_in[key]


def taken_from(array: Any) -> int:
    """Return one number for all arrays over the same memory from elsewhere; 0 for others."""
    owner = _owner(array)
    return owner if owner in taken_in else 0


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


def are_one(array: Any, other: Any) -> bool:
    """Return whether two arrays show the same memory from elsewhere."""
    found = taken_from(array)
    return found != 0 and found == taken_from(other)


def is_handed_out(array: Any) -> bool:
    """Return whether somebody got hold of an array's memory while it was watched, or had it before."""
    owner = _owner(array)
    entry = watched.get(owner)
    return owner in taken_in or (entry is not None and entry[1] == 1)
