"""Kernels of orthogonal polynomials, modified Bessel functions and trigamma; others are left to SciPy."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import special
from .._dtypes import FLOATS, SINGLE_AND_DOUBLE
from ..below import below
from ..pointwise_fused import Fused


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    loops = {name: Fused(name).call for name in ("i0", "i0e", "i1", "i1e")}
    trigamma = Fused("trigamma").call

    bessel_below = below("bessel")

    @table.kernel(dtypes=FLOATS)
    def bessel(input: Any, function: str) -> Any:
        loop = loops.get(function)
        return bessel_below(input, function) if loop is None else loop((input,))

    table.add("orthogonal_polynomial", special.orthogonal_polynomial, dtypes=SINGLE_AND_DOUBLE)

    @table.kernel("trigamma", dtypes=FLOATS)
    def trigamma_of(input: Any) -> Any:
        return trigamma((input,))
