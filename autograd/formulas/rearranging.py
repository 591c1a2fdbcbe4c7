"""Derivatives of rearranged copies."""

from __future__ import annotations

from tensorplug.core.ops.rearranging import flip, roll

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule

DERIVATIVES = [
    derivative("flip", input=lambda g, dims: flip(g, dims)),
    derivative(
        "roll", input=lambda g, shifts, dims: roll(g, tuple([-step for step in shifts]), dims)
    ),
]


TANGENTS = [
    linear("flip", "input"),
    linear("roll", "input"),
]


VMAP_RULES = [
    shared_rule("over_dims", "flip"),
    shared_rule("loop_by_counts", "repeat_interleave"),
]
