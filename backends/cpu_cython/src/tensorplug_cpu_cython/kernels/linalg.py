"""Kernels of linear algebra, by the LAPACK that SciPy brings."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import (
    linalg_cross,
    linalg_exponential,
    linalg_factors,
    linalg_orthogonal,
    linalg_solve,
    linalg_spectra,
    linalg_tall,
)
from .._dtypes import COMPLEX, SINGLE_AND_DOUBLE
from ..below import below

_MODULES = (
    linalg_exponential,
    linalg_factors,
    linalg_orthogonal,
    linalg_solve,
    linalg_spectra,
    linalg_tall,
)
_OF_WHOLE_NUMBERS = frozenset(("linalg_check_errors", "pivots_to_permutation"))


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for module in _MODULES:
        for op, kernel in module.kernels(below).items():
            whole = op in _OF_WHOLE_NUMBERS
            dtypes = (dtype_named("int32"),) if whole else (*SINGLE_AND_DOUBLE, *COMPLEX)
            table.add(op, kernel, dtypes=dtypes)
    whole_numbers = tuple(map(dtype_named, ("int64", "int32")))
    table.add("linalg_cross", linalg_cross.cross, dtypes=(*SINGLE_AND_DOUBLE, *whole_numbers))
