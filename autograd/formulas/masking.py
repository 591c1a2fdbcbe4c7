"""Derivatives of choice by a mask."""

from __future__ import annotations

from tensorplug.core.ops.masking import choose

from ..derivatives import derivative
from ..tangents import holomorphic

DERIVATIVES = [
    derivative(
        "choose",
        condition=None,
        input=lambda g, condition: choose(condition, g, 0),
        other=lambda g, condition: choose(condition, 0, g),
    ),
]


TANGENTS = [
    *holomorphic("choose"),
]
