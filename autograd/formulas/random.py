"""Random numbers depend on no tensor's elements."""

from __future__ import annotations

from ..derivatives import not_differentiable

DERIVATIVES = [
    *not_differentiable("philox_bits"),
]
