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


#: Degrees above take too many steps.
MOST_STEPS = 10**6


def _of_high_degrees(xp: Any, x: Any, n: Any, family: str) -> Any:
    """Return polynomials of degrees beyond steps: NaN where neither angles nor the ends of [-1, 1] give them.

    Abramowitz and Stegun, 22.3.15 and 22.3.16, and 22.4 for the ends.
    """
    # Angles are known to as many digits as the degree leaves.
    wide = getattr(xp, "float64", x.dtype)
    x, n = xp.asarray(x, wide), xp.asarray(n, wide)
    sign = xp.where((x < 0) & (xp.remainder(n, 2) == 1), -1, 1)
    ends, angle = abs(x) == 1, xp.arccos(xp.where(abs(x) < 1, x, 0))
    if family == "chebyshev_t":
        within, at_ends = xp.cos(n * angle), sign
    elif family == "chebyshev_u":
        within, at_ends = xp.sin((n + 1) * angle) / xp.sin(angle), (n + 1) * sign
    elif family == "chebyshev_v":
        within = xp.cos((n + 0.5) * angle) / xp.cos(angle / 2)
        at_ends = xp.where(x > 0, 1, (2 * n + 1) * sign)
    elif family == "chebyshev_w":
        within = xp.sin((n + 0.5) * angle) / xp.sin(angle / 2)
        at_ends = xp.where(x > 0, 2 * n + 1, sign)
    else:
        within, at_ends = x * xp.nan, sign
        if family == "laguerre_l":
            ends, at_ends = x == 0, 1
        elif family != "legendre_p":
            ends = ends & False
    return xp.where(ends, at_ends, xp.where(abs(x) < 1, within, xp.nan))


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp

    def orthogonal_polynomial(input: Any, n: Any, family: str) -> Any:
        first, step = _FAMILIES[family]
        if getattr(n, "dtype", None) is None:
            n = xp.asarray(n, input.dtype)
        x, degree = xp.broadcast_arrays(xp.asarray(input, n.dtype), xp.trunc(n))
        # As in torch those that are no 64-bit integers count as negative, of which there is no polynomial.
        degree = xp.where(abs(degree) < 2.0**63, degree, -1)
        result, high = xp.zeros(x.shape, x.dtype), degree > MOST_STEPS
        if xp.any(high):
            far = _of_high_degrees(xp, x, xp.where(high, degree, 1), family)
            result = xp.asarray(xp.where(high, far, result), x.dtype)
        steps = xp.where(high, -1, degree)
        largest = int(xp.max(steps)) if degree.size else -1
        before, last = xp.ones_like(x), first(x)
        for k in range(largest + 1):
            result = xp.where(steps == k, before, result)
            before, last = last, step(x, k + 1, last, before)
            if k % 1000 == 999 and xp.all(xp.isnan(before) | (steps <= k)):
                result = xp.where(steps > k, before, result)
                break  # what overflowed is NaN in all further steps
        return result

    table.add("orthogonal_polynomial", orthogonal_polynomial)
    table.add(
        "orthogonal_polynomial",
        namespace.through_float32(orthogonal_polynomial),
        dtypes=(float16, bfloat16),
    )
