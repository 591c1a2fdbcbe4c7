"""The derivatives of the ops that core declares, by family."""

from __future__ import annotations

from typing import Any

from . import (
    comparison,
    copying,
    creation,
    cumulative,
    distances,
    elementary,
    fourier,
    gathering,
    indexing,
    joining,
    linalg_factors,
    linalg_spectra,
    norms,
    numeric,
    pointwise,
    products,
    rearranging,
    reductions,
    shape,
    softmaxes,
    sorting,
    special,
    statistics,
    strided,
)

ALL: tuple[Any, ...] = (
    *copying.DERIVATIVES,
    *creation.DERIVATIVES,
    *products.DERIVATIVES,
    *pointwise.DERIVATIVES,
    *reductions.DERIVATIVES,
    *shape.DERIVATIVES,
    *rearranging.DERIVATIVES,
    *strided.DERIVATIVES,
    *gathering.DERIVATIVES,
    *numeric.DERIVATIVES,
    *indexing.DERIVATIVES,
    *joining.DERIVATIVES,
    *softmaxes.DERIVATIVES,
    *cumulative.DERIVATIVES,
    *sorting.DERIVATIVES,
    *statistics.DERIVATIVES,
    *norms.DERIVATIVES,
    *elementary.DERIVATIVES,
    *comparison.DERIVATIVES,
    *distances.DERIVATIVES,
    *linalg_factors.DERIVATIVES,
    *linalg_spectra.DERIVATIVES,
    *special.DERIVATIVES,
    *fourier.DERIVATIVES,
)
