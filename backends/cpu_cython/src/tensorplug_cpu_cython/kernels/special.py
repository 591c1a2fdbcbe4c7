"""Kernels of special functions: SciPy's without NumPy's calls, others by loops of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable

from .. import special
from .._dtypes import FLOATS, SINGLE_AND_DOUBLE
from ..below import below
from ..halves import HALVES, add_floats, in_single
from ..pointwise_fused import Fused

#: What they are called in SciPy.
_OF_ONE = {
    "special_spherical_bessel_j0": "spherical_j0",
}
_OF_TWO = {"igamma": "gammainc", "igammac": "gammaincc"}
_BESSEL = {
    "airy_ai": "airy",
    **{name: name for name in ("j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")},
}


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    loops = {name: Fused(name).call for name in ("i0", "i0e", "i1", "i1e")}
    trigamma = Fused("trigamma").call
    erfcx, log_ndtr, ndtri = [Fused(name).call for name in ("erfcx", "log_ndtr", "ndtri")]
    for op, name in _OF_ONE.items():
        add_floats(table, op, special.Function(name).of_one)
    for op, name in _OF_TWO.items():
        add_floats(table, op, special.Function(name).of_two)
    # Of double the errors of its powers would be larger than SciPy's.
    zeta = special.Function("zeta").of_two
    table.add("special_zeta", zeta, dtypes=SINGLE_AND_DOUBLE[:1])
    table.add("special_zeta", in_single(zeta), dtypes=HALVES)
    functions = {name: special.Function(own).of_one for name, own in _BESSEL.items()}
    bessel_below = below("bessel")
    airy = functions["airy_ai"]

    def airy_of_double(input: Any) -> Any:
        # SciPy has nan where the kernel below has an expansion.
        found = airy(input)
        return bessel_below(input, "airy_ai") if np.isnan(found).any() else found

    of_double = {**functions, "airy_ai": airy_of_double}

    def add_bessel(dtype: DType, functions: dict[str, Any]) -> None:
        @table.kernel(dtypes=(dtype,))
        def bessel(input: Any, function: str) -> Any:
            loop = functions.get(function)
            return loops_or_below(input, function) if loop is None else loop(input)

    for dtype, known in zip(SINGLE_AND_DOUBLE, (functions, of_double), strict=True):
        add_bessel(dtype, known)

    @table.kernel("bessel", dtypes=[dtype for dtype in FLOATS if dtype not in SINGLE_AND_DOUBLE])
    def loops_or_below(input: Any, function: str) -> Any:
        loop = loops.get(function)
        return bessel_below(input, function) if loop is None else loop((input,))

    add_floats(table, "special_erfcx", lambda input: erfcx((input,)))
    add_floats(table, "special_log_ndtr", lambda input: log_ndtr((input,)))

    @table.kernel(dtypes=FLOATS)
    def special_ndtri(input: Any) -> Any:
        return ndtri((input,))

    table.add(
        "orthogonal_polynomial", special.orthogonal_polynomial_kernel(), dtypes=SINGLE_AND_DOUBLE
    )

    digamma = Fused("digamma").call

    @table.kernel("digamma", dtypes=FLOATS)
    def digamma_of(input: Any) -> Any:
        return digamma((input,))

    @table.kernel("trigamma", dtypes=FLOATS)
    def trigamma_of(input: Any) -> Any:
        return trigamma((input,))
