"""Bitwise ops have no derivatives."""

from __future__ import annotations

from ..engine.derivatives import not_differentiable

DERIVATIVES = [
    *not_differentiable(
        "bitwise_and",
        "bitwise_left_shift",
        "bitwise_not",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
    ),
]
