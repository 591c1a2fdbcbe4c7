"""Pointwise kernels: arithmetic, rounding, selection, elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.dtypes import COMPLEXES, FLOATS, INTEGRAL, bfloat16, bool_, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Ops that the library has under a name of its own, as a universal function with out=.
_UNIVERSAL = {
    "abs": "absolute",
    "add": "add",
    "atan2": "arctan2",
    "clamp_max": "minimum",
    "clamp_min": "maximum",
    "conj_physical": "conjugate",
    "copysign": "copysign",
    "cos": "cos",
    "exp": "exp",
    "expm1": "expm1",
    "floor": "floor",
    "floor_divide": "floor_divide",
    "fmod": "fmod",
    "gcd": "gcd",
    "log": "log",
    "log1p": "log1p",
    "maximum": "maximum",
    "minimum": "minimum",
    "mul": "multiply",
    "neg": "negative",
    "power": "power",
    "remainder": "remainder",
    "rint": "rint",
    "sin": "sin",
    "sqrt": "sqrt",
    "square": "square",
    "sub": "subtract",
    "tanh": "tanh",
    "true_divide": "true_divide",
}

# Composites that the library computes at once. Their bodies convert integers, so kernels name dtypes.
_FUSED = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "cosh": "cosh",
    "log10": "log10",
    "log2": "log2",
    "sinh": "sinh",
    "tan": "tan",
}
_FUSED_REAL = {"_nextafter": "nextafter", "ceil": "ceil", "exp2": "exp2", "trunc": "trunc"}

_HALVES = (float16, bfloat16)


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    xp = namespace.xp
    for op, name in _UNIVERSAL.items():
        table.add(op, getattr(xp, name), out=True)
    for op, name in _FUSED.items():
        table.add(op, getattr(xp, name), dtypes=(*FLOATS, *COMPLEXES))
    for op, name in _FUSED_REAL.items():
        table.add(op, getattr(xp, name), dtypes=FLOATS)
    _add_integer_kernels(xp, table)

    def rsqrt(input: Any) -> Any:
        root = xp.sqrt(input)
        return xp.reciprocal(root)

    def sigmoid(input: Any) -> Any:
        # Where exp overflows, the reciprocal of inf is the right 0.
        total = xp.exp(xp.negative(input))
        total += 1
        return xp.reciprocal(total)

    @table.kernel()
    def sign(input: Any) -> Any:
        # The library's sign of nan is nan, the declared one 0.
        result = xp.sign(input)
        return (
            result
            if input.dtype.kind in "iu"
            else xp.where(input == input, result, input.dtype.type(0))
        )

    for function in (rsqrt, sigmoid):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=_HALVES)

    @table.kernel(out=True)
    def relu(input: Any, out: Any = None) -> Any:
        return xp.maximum(input, input.dtype.type(0), out=out)

    @table.kernel()
    def frexp_parts(input: Any) -> Any:
        return xp.frexp(input)

    @table.kernel()
    def where(condition: Any, input: Any, other: Any) -> Any:
        return xp.where(condition, input, other)


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
    def power(input: Any, exponent: Any) -> Any:
        if exponent.dtype.kind == "u":
            return xp.power(input, exponent)
        negative = exponent < 0
        if not negative.any():
            return xp.power(input, exponent)
        # A reciprocal rounds to zero, except of 1 and -1.
        unit = xp.where(input == 1, 1, xp.where(input == -1, 1 - 2 * (exponent & 1), 0))
        positive = xp.power(input, xp.where(negative, 0, exponent))
        return xp.where(negative, unit, positive).astype(input.dtype)

    table.add("power", lambda input, exponent: input | ~exponent, dtypes=(bool_,))
    for op in ("conj_physical", "sign"):
        table.add(op, lambda input: xp.array(input, copy=True), dtypes=(bool_,))
    for op in ("floor", "rint"):
        table.add(op, lambda input: xp.array(input, copy=True), dtypes=INTEGRAL)
