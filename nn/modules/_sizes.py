"""Sizes that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Sequence

Ints = int | Sequence[int]


def as_tuple(value: Ints, count: int) -> tuple[int, ...]:
    """Return `count` numbers."""
    return (value,) * count if isinstance(value, int) else tuple(value)
