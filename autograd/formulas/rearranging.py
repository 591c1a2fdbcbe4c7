"""Derivatives of rearranged copies."""

from __future__ import annotations

from tensorplug.core.ops.rearranging import flip, roll
from tensorplug.core.ops.triangles import tril, triu

from ..derivatives import derivative

DERIVATIVES = [
    derivative("flip", input=lambda g, dims: flip(g, dims)),
    derivative(
        "roll", input=lambda g, shifts, dims: roll(g, tuple([-step for step in shifts]), dims)
    ),
    derivative("tril", input=lambda g, diagonal: tril(g, diagonal)),
    derivative("triu", input=lambda g, diagonal: triu(g, diagonal)),
]
