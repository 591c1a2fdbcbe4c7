"""Sizes that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index

Ints = int | Sequence[int]


def as_tuple(value: Ints, count: int) -> tuple[int, ...]:
    """Return `count` numbers, of an int (NumPy's too), or those of a sequence."""
    if isinstance(value, Iterable):
        return tuple(value)
    if isinstance(value, bool):  # stays one, and is refused where it is used
        return (value,) * count
    try:
        return (index(value),) * count
    except TypeError:
        raise TypeError(f"expected int or tuple of ints, got {type(value).__name__}") from None
