"""Derivatives of choice by a mask."""

from __future__ import annotations

from tensorplug.core.ops.masking import where

from ..engine.derivatives import derivative
from ..forward.tangents import holomorphic

DERIVATIVES = [
    derivative(
        "where",
        condition=None,
        input=lambda g, condition: where(condition, g, 0),
        other=lambda g, condition: where(condition, 0, g),
    ),
]


TANGENTS = [
    *holomorphic("where"),
]
