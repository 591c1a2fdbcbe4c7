"""Kernels of orthogonal polynomials, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import bfloat16, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace


def _chebyshev(x: Any, _k: int, last: Any, before: Any) -> Any:
    return 2 * x * last - before


def _hermite_h(x: Any, k: int, last: Any, before: Any) -> Any:
    return 2 * (x * last - k * before)


def _hermite_he(x: Any, k: int, last: Any, before: Any) -> Any:
    return x * last - k * before


def _laguerre_l(x: Any, k: int, last: Any, before: Any) -> Any:
    return ((2 * k + 1 - x) * last - k * before) / (k + 1)


def _legendre_p(x: Any, k: int, last: Any, before: Any) -> Any:
    return ((2 * k + 1) * x * last - k * before) / (k + 1)


_Step = Callable[[Any, int, Any, Any], Any]

# The polynomial of degree 1, and how that of degree k + 1 follows from the two before it.
_FAMILIES: dict[str, tuple[Callable[[Any], Any], _Step]] = {
    "chebyshev_t": (lambda x: x, _chebyshev),
    "chebyshev_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_h": (lambda x: 2 * x, _hermite_h),
    "hermite_he": (lambda x: x, _hermite_he),
    "laguerre_l": (lambda x: 1 - x, _laguerre_l),
    "legendre_p": (lambda x: x, _legendre_p),
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    def orthogonal_polynomial(input: Any, n: Any, family: str) -> Any:
        first, step = _FAMILIES[family]
        if getattr(n, "dtype", None) is None:
            n = xp.asarray(n, input.dtype)
        x, degree = xp.broadcast_arrays(xp.asarray(input, n.dtype), xp.trunc(n))
        result = xp.zeros(x.shape, x.dtype)
        largest = int(xp.max(xp.where(xp.isfinite(degree), degree, -1))) if degree.size else -1
        before, last = xp.ones_like(x), first(x)
        for k in range(largest + 1):
            result = xp.where(degree == k, before, result)
            before, last = last, step(x, k + 1, last, before)
        return result

    table.add("orthogonal_polynomial", orthogonal_polynomial)
    table.add(
        "orthogonal_polynomial",
        namespace.through_float32(orthogonal_polynomial),
        dtypes=(float16, bfloat16),
    )
