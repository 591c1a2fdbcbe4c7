"""Sizes that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Ints = int | Sequence[int]


def as_tuple(value: Ints, count: int) -> tuple[int, ...]:
    """Return `count` numbers."""
    if isinstance(value, int):
        return (value,) * count
    if not isinstance(value, Iterable):
        raise TypeError(f"expected int or tuple of ints, got {type(value).__name__}")
    return tuple(value)
