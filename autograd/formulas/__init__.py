"""The derivatives of the ops that core declares, by family."""

from __future__ import annotations

from typing import Any

from . import (
    arithmetic,
    bitwise,
    clamp,
    comparison,
    copying,
    creation,
    cumulative,
    distances,
    elementary,
    fft,
    indexing,
    joining,
    linalg,
    masking,
    matmul,
    norms,
    numeric,
    random,
    rearranging,
    reductions,
    shape,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
)

FAMILIES = (
    arithmetic,
    bitwise,
    clamp,
    comparison,
    copying,
    creation,
    cumulative,
    distances,
    elementary,
    fft,
    indexing,
    joining,
    linalg,
    masking,
    matmul,
    norms,
    numeric,
    random,
    rearranging,
    reductions,
    shape,
    softmax,
    sorting,
    special,
    statistics,
    strided,
    triangles,
)

ALL: tuple[Any, ...] = tuple(
    [
        item
        for family in FAMILIES
        for name in ("DERIVATIVES", "TANGENTS")
        for item in getattr(family, name, ())
    ]
)
