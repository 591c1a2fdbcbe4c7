"""Kernels of linear algebra, by the LAPACK that SciPy brings."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import linalg
from .._dtypes import COMPLEX, SINGLE_AND_DOUBLE
from ..below import below

_OF_WHOLE_NUMBERS = frozenset(("linalg_check_errors", "pivots_to_permutation"))


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, kernel in linalg.kernels(below).items():
        dtypes = (
            (dtype_named("int32"),) if op in _OF_WHOLE_NUMBERS else (*SINGLE_AND_DOUBLE, *COMPLEX)
        )
        table.add(op, kernel, dtypes=dtypes)
