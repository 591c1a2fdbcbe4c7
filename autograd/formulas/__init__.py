"""The derivatives of the ops that core declares, by family."""

from __future__ import annotations

from typing import Any

from . import (
    joining,
    indexing,
    comparison,
    copying,
    creation,
    cumulative,
    elementary,
    norms,
    pointwise,
    products,
    reductions,
    shape,
    softmaxes,
    sorting,
    statistics,
)

ALL: tuple[Any, ...] = (
    *copying.DERIVATIVES,
    *creation.DERIVATIVES,
    *products.DERIVATIVES,
    *pointwise.DERIVATIVES,
    *reductions.DERIVATIVES,
    *shape.DERIVATIVES,
    *indexing.DERIVATIVES,
    *joining.DERIVATIVES,
    *softmaxes.DERIVATIVES,
    *cumulative.DERIVATIVES,
    *sorting.DERIVATIVES,
    *statistics.DERIVATIVES,
    *norms.DERIVATIVES,
    *elementary.DERIVATIVES,
    *comparison.DERIVATIVES,
)
