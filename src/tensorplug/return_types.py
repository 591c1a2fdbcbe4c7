"""The named tuples that ops with several results return, as in ``torch.return_types``."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.linalg.results import (
    geqrf,
    linalg_cholesky_ex,
    linalg_eig,
    linalg_eigh,
    linalg_inv_ex,
    linalg_ldl_factor,
    linalg_ldl_factor_ex,
    linalg_lstsq,
    linalg_lu,
    linalg_lu_factor,
    linalg_lu_factor_ex,
    linalg_qr,
    linalg_slogdet,
    linalg_solve_ex,
    linalg_svd,
    lu_unpack,
    qr,
    slogdet,
    svd,
    triangular_solve,
)
from tensorplug.core.ops.results import (
    aminmax,
    cummax,
    cummin,
    frexp,
    histogram,
    histogramdd,
    kthvalue,
    max,
    median,
    min,
    mode,
    nanmedian,
    sort,
    topk,
)

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "qr",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]


def __getattr__(name: str) -> Any:
    """Return what ops that are given ``out=`` return: ``sort_out`` is ``sort``."""
    plain = name.removesuffix("_out")
    if plain != name and plain in __all__:
        return globals()[plain]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
