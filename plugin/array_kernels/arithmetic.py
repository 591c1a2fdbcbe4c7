"""Kernels of arithmetic of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.device.dtypes import INTEGRAL, bool_

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Ops that the library has under a name of its own, as a universal function with out=.
_UNIVERSAL = {
    "abs": "absolute",
    "add": "add",
    "conj_physical": "conjugate",
    "floor_divide": "floor_divide",
    "fmod": "fmod",
    "mul": "multiply",
    "neg": "negative",
    "pow": "power",
    "remainder": "remainder",
    "square": "square",
    "sub": "subtract",
    "div": "true_divide",
}


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(xp, name), out=True)
    _add_integer_kernels(xp, table)

    @table.kernel()
    def sign(input: Any) -> Any:
        # The library's sign of nan is nan, the declared one 0.
        result = xp.sign(input)
        return (
            result
            if input.dtype.kind in "iu"
            else xp.where(input == input, result, input.dtype.type(0))
        )


def _add_integer_kernels(xp: Any, table: KernelTable) -> None:
    """Add the kernels of integers and bool, whose semantics differ from the library's."""

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
        def divide(input: Any, other: Any, out: Any = None) -> Any:
            if input.size and not other.all():
                raise RuntimeError("ZeroDivisionError")
            return function(input, other, out=out)

        return divide

    for op in ("floor_divide", "fmod", "remainder"):
        table.add(op, checked(getattr(xp, op)), dtypes=INTEGRAL, out=True)

    @table.kernel(dtypes=INTEGRAL)
    def pow(input: Any, exponent: Any) -> Any:
        if exponent.dtype.kind == "u":
            return xp.power(input, exponent)
        if not exponent.ndim and exponent == 2:
            return input * input
        negative = exponent < 0
        if not negative.any():
            return xp.power(input, exponent)
        # A reciprocal rounds to zero, except of 1 and -1.
        unit = xp.where(input == 1, 1, xp.where(input == -1, 1 - 2 * (exponent & 1), 0))
        positive = xp.power(input, xp.where(negative, 0, exponent))
        return xp.where(negative, unit, positive).astype(input.dtype)

    table.add("pow", lambda input, exponent: input | ~exponent, dtypes=(bool_,))
    for op in ("conj_physical", "sign"):
        table.add(op, lambda input: xp.array(input, copy=True), dtypes=(bool_,))
