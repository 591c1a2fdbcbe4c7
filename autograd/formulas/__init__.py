"""The derivatives of the ops that core declares, by family."""

from __future__ import annotations

from typing import Any

from . import (
    joining,
    indexing,
    comparison,
    copying,
    cumulative,
    elementary,
    norms,
    pointwise,
    products,
    reductions,
    shape,
    softmax,
    sorting,
    statistics,
)

ALL: tuple[Any, ...] = (
    *copying.DERIVATIVES,
    *products.DERIVATIVES,
    *pointwise.DERIVATIVES,
    *reductions.DERIVATIVES,
    *shape.DERIVATIVES,
    *indexing.DERIVATIVES,
    *joining.DERIVATIVES,
    *softmax.DERIVATIVES,
    *cumulative.DERIVATIVES,
    *sorting.DERIVATIVES,
    *statistics.DERIVATIVES,
    *norms.DERIVATIVES,
    *elementary.DERIVATIVES,
    *comparison.DERIVATIVES,
)
