"""Kernels of elementary functions and of rounding."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import COMPLEXES, FLOATS, INTEGRAL, bfloat16, float16

from ..tables import KernelTable
from .namespace import ArrayNamespace

# Ops that the library has under a name of its own, as a universal function with out=.
_UNIVERSAL = {
    "atan2": "arctan2",
    "cos": "cos",
    "exp": "exp",
    "expm1": "expm1",
    "floor": "floor",
    "log": "log",
    "log1p": "log1p",
    "rint": "rint",
    "sin": "sin",
    "sqrt": "sqrt",
    "tanh": "tanh",
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
_FUSED_REAL = {
    "ceil": "ceil",
    "exp2": "exp2",
    "trunc": "trunc",
}

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
    for op in ("floor", "rint"):
        table.add(op, lambda input: xp.array(input, copy=True), dtypes=INTEGRAL)

    @table.kernel("log1p", dtypes=COMPLEXES)
    def log1p_complex(input: Any) -> Any:
        # The libraries add the 1 first, which takes the digits of what is small beside it.
        real, imag = input.real, input.imag
        squares = real * (2 + real) + imag * imag  # of |1 + input|, less 1
        far = xp.log(xp.hypot(1 + real, imag))
        result = xp.empty_like(input)
        result.real = xp.where(abs(squares) < 0.5, 0.5 * xp.log1p(squares), far)
        result.imag = xp.arctan2(imag, 1 + real)
        return result

    def rsqrt(input: Any) -> Any:
        root = xp.sqrt(input)
        return xp.reciprocal(root)

    def sigmoid(input: Any) -> Any:
        # Where exp overflows, the reciprocal of inf is the right 0.
        total = xp.exp(xp.negative(input))
        total += 1
        return xp.reciprocal(total)

    # The library's reciprocal of a complex 0 is NaN, its quotient infinite.
    table.add("rsqrt", lambda input: 1 / xp.sqrt(input), dtypes=COMPLEXES)
    for function in (rsqrt, sigmoid):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=_HALVES)

    @table.kernel(out=True)
    def relu(input: Any, out: Any = None) -> Any:
        return xp.maximum(input, input.dtype.type(0), out=out)
