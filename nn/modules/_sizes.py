"""Sizes that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index

Ints = int | Sequence[int]


def as_tuple(value: Ints, count: int) -> tuple[int, ...]:
    """Return `count` numbers, of an int (NumPy's too), or those of a sequence."""
    if isinstance(value, Iterable):
        return tuple(value)
    try:
        return (
            value if isinstance(value, int) else index(value),
        ) * count  # a bool stays one, and is refused
    except TypeError:
        raise TypeError(f"expected int or tuple of ints, got {type(value).__name__}") from None
