"""Kernels of linear algebra, by the LAPACK that SciPy brings."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, dtype_named

from .. import linalg
from .._dtypes import SINGLE_AND_DOUBLE
from ..below import below

DTYPES = (*SINGLE_AND_DOUBLE, dtype_named("complex64"), dtype_named("complex128"))
_OF_WHOLE_NUMBERS = frozenset(("linalg_check_errors", "pivots_to_permutation"))


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for op, kernel in linalg.kernels(below).items():
        dtypes = (dtype_named("int32"),) if op in _OF_WHOLE_NUMBERS else DTYPES
        table.add(op, kernel, dtypes=dtypes)
