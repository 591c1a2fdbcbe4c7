"""Special functions from CuPy's part of SciPy; Airy's functions, which it lacks, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.plugin import KernelTable
from tensorplug.plugin.array_kernels import ArrayNamespace

from .._cupy import LazyModule, cp
from ..dtypes import HALVES

_special: Any = LazyModule("cupyx.scipy.special")

#: Our names and CuPy's.
UNIVERSAL = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "special_erfcx": "erfcx",
    "special_log_ndtr": "log_ndtr",
    "special_ndtr": "ndtr",
    "special_ndtri": "ndtri",
    "special_zeta": "zeta",
}
BESSEL = (
    "i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1",
)  # fmt: skip


def build(namespace: ArrayNamespace, table: KernelTable, airy: Callable[..., Any]) -> None:
    """Add these kernels to `table`.

    Parameters
    ----------
    airy : callable
        The kernel of "bessel" for the functions that CuPy lacks.
    """

    def add(op: str, function: Callable[..., Any]) -> None:
        table.add(op, function, accepts=lambda dtype: dtype.is_floating_point)
        table.add(op, namespace.through_float32(function), dtypes=HALVES)

    for op, name in UNIVERSAL.items():
        add(op, _function(name))
    add("lgamma", lgamma)

    def bessel(input: Any, function: str) -> Any:
        if function not in BESSEL:
            return airy(input, function)
        return getattr(_special, function)(input)

    add("bessel", bessel)


def _function(name: str) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        return getattr(_special, name)(*arrays).astype(arrays[0].dtype, copy=False)

    return call


def lgamma(input: Any) -> Any:
    """Return the logarithm of the absolute gamma function; inf at minus infinity, as in C."""
    found = _special.gammaln(input).astype(input.dtype, copy=False)
    return cp.where(cp.isinf(input), cp.abs(input), found)
