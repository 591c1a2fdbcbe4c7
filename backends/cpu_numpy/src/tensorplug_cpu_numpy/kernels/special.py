"""Special functions from SciPy, in the precision of their arguments; halves through float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named, renew_thread_limit
from tensorplug.plugin.array_kernels import ArrayNamespace


class _Special:
    """The functions of scipy.special; the first call of any imports it, which takes 30 ms."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Any = None

        def call(*args: Any) -> Any:
            nonlocal function
            if function is None:
                from scipy import special

                renew_thread_limit("cpu")  # it brings SciPy's BLAS along
                function = getattr(special, name)
            return function(*args)

        return call


special = _Special()


def _lgamma(input: Any) -> Any:
    # SciPy has -inf at minus infinity, C and the op's declaration inf; for the smallest numbers it has inf,
    # where the function is -log(abs(x)) up to terms of the size of x.
    result = np.where(input == -np.inf, np.inf, special.gammaln(input))
    small = np.abs(input) < np.finfo(np.float64).tiny
    if small.any():
        result = np.where(small, -np.log(np.abs(input.astype(np.float64))), result)
    return result.astype(input.dtype)


_UNIVERSAL = {
    "digamma": special.digamma,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "lgamma": _lgamma,
    "special_erfcx": special.erfcx,
    "special_log_ndtr": special.log_ndtr,
    "special_ndtr": special.ndtr,
    "special_ndtri": special.ndtri,
    "special_zeta": special.zeta,
}


def _airy(input: Any, which: int) -> Any:
    """Return Airy's function or its derivative; SciPy has nan where the argument is very large.

    Below -1e6 it is the first term of the expansion for large arguments, DLMF 9.7.9 and 9.7.10: the second
    one is below 1e-9 of it, and the phase is known no better from a double.
    """
    result = np.where(input > 200, input.dtype.type(0), special.airy(input)[which])
    far = (input < -1e6) & np.isfinite(input)
    if far.any():
        size = -input[far].astype(np.float64)
        phase = size * np.sqrt(size) * (2 / 3) + np.pi / 4
        wave = -np.cos(phase) * size**0.25 if which else np.sin(phase) / size**0.25
        result[far] = wave / np.sqrt(np.pi)
    return result


def _grown(function: Any, limit: Any) -> Any:
    """Return a function that grows without bound; SciPy has nan where its argument is infinite."""
    return lambda input: np.where(np.isinf(input), limit(input), function(input))


_BESSEL: dict[str, Any] = {
    "airy_ai": lambda input: _airy(input, 0),
    "airy_ai_prime": lambda input: _airy(input, 1),
    "i0": _grown(special.i0, np.abs),
    "i0e": special.i0e,
    "i1": _grown(special.i1, np.positive),
    "i1e": special.i1e,
    "j0": special.j0,
    "j1": special.j1,
    "k0": special.k0,
    "k0e": special.k0e,
    "k1": special.k1,
    "k1e": special.k1e,
    "y0": special.y0,
    "y1": special.y1,
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add these kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for op, function in _UNIVERSAL.items():
        table.add(op, function, accepts=lambda dtype: dtype.is_floating_point)
        table.add(op, namespace.through_float32(function), dtypes=halves)

    def bessel(input: Any, function: str) -> Any:
        return np.asarray(_BESSEL[function](input), input.dtype)

    table.add("bessel", bessel)
    table.add("bessel", namespace.through_float32(bessel), dtypes=halves)
