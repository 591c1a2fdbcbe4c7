"""The derivatives of the ops that core declares, by family."""

from __future__ import annotations

from typing import Any

from . import copying, pointwise, products, reductions, shape

ALL: tuple[Any, ...] = (
    *copying.DERIVATIVES,
    *products.DERIVATIVES,
    *pointwise.DERIVATIVES,
    *reductions.DERIVATIVES,
    *shape.DERIVATIVES,
)
