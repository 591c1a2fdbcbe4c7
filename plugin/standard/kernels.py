"""Kernels written once against the functions of the Python array API standard (2024.12).

They see the library's own arrays, never write to them, and name the dtypes for which the standard
defines the function they call; what it leaves out (special functions, scatter, decompositions) computes
on the host. https://data-apis.org/array-api/2024.12/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tensorplug.core.device.dtypes import (
    ALL_DTYPES,
    COMPLEXES,
    DType,
    Number,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int64,
    uint8,
)
from tensorplug.core.tensor.shapes import Shape, reduced_shape

from .runtime import ArrayApiRuntime

INTEGERS = tuple(d for d in ALL_DTYPES if not (d.is_floating_point or d.is_complex or d is bool_))
FLOATS = (float32, float64)
HALVES = (float16, bfloat16)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEXES)

#: What the stores and most kernels here call; the other functions are used where the library has them.
REQUIRED = (
    "arange", "asarray", "astype", "broadcast_to", "concat", "full", "permute_dims", "reshape", "take",
    "where", "zeros",
)  # fmt: skip


class Add(Protocol):
    """Adds a kernel, if the library has every function that it needs beside the required ones."""

    def __call__(
        self, op: str, function: Callable[..., Any], dtypes: Iterable[DType], needs: str = ""
    ) -> None:
        """Add it."""


# By op: the standard's function of the same arguments, and the dtypes for which both mean the same.
_POINTWISE: dict[str, tuple[str, tuple[DType, ...]]] = {
    "abs": ("abs", (*INTEGERS, *FLOATS)),
    "add": ("add", NUMBERS),
    "atan2": ("atan2", FLOATS),
    "bitwise_and": ("bitwise_and", (*INTEGERS, bool_)),
    "bitwise_not": ("bitwise_invert", (*INTEGERS, bool_)),
    "bitwise_or": ("bitwise_or", (*INTEGERS, bool_)),
    "bitwise_xor": ("bitwise_xor", (*INTEGERS, bool_)),
    "clamp_max": ("minimum", REALS),
    "clamp_min": ("maximum", REALS),
    "copysign": ("copysign", FLOATS),
    "cos": ("cos", FLOATS),
    "eq": ("equal", (*NUMBERS, bool_)),
    "exp": ("exp", FLOATS),
    "expm1": ("expm1", FLOATS),
    "floor": ("floor", FLOATS),
    "ge": ("greater_equal", REALS),
    "gt": ("greater", REALS),
    "le": ("less_equal", REALS),
    "log": ("log", FLOATS),
    "log1p": ("log1p", FLOATS),
    "lt": ("less", REALS),
    "maximum": ("maximum", REALS),
    "minimum": ("minimum", REALS),
    "mul": ("multiply", NUMBERS),
    "ne": ("not_equal", (*NUMBERS, bool_)),
    "neg": ("negative", NUMBERS),
    "pow": ("pow", FLOATS),
    "rint": ("round", FLOATS),
    "sin": ("sin", FLOATS),
    "sqrt": ("sqrt", FLOATS),
    "square": ("square", NUMBERS),
    "sub": ("subtract", NUMBERS),
    "tanh": ("tanh", FLOATS),
    "div": ("divide", (*FLOATS, *COMPLEXES)),
}


def add_kernels(runtime: ArrayApiRuntime, add: Add) -> None:
    """Add every kernel that the library has the functions for."""
    for op, (name, dtypes) in _POINTWISE.items():
        add(op, getattr(runtime.xp, name, _absent), dtypes, needs=name)
    for family in (_add_copies, _add_composed, _add_reductions, _add_places, _add_along):
        family(runtime, add)


def _absent(*args: Any, **options: Any) -> Any:
    """Stand for a function that the library lacks: what needs it is not added."""
    raise NotImplementedError


def _add_copies(runtime: ArrayApiRuntime, add: Add) -> None:
    xp, natives = runtime.xp, runtime.natives

    def cast(input: Any, dtype: DType) -> Any:
        source = runtime.dtype_of(input)
        if dtype is bool_:
            return input != 0 if source is not bool_ else input
        if source.is_complex and not dtype.is_complex:
            input = xp.real(input)  # where there are complex numbers
        if source.is_floating_point and not (dtype.is_floating_point or dtype.is_complex):
            # By way of int64, so that what is out of range wraps around as it does on the CPU.
            input = xp.astype(input, natives[int64])
        return xp.astype(input, natives[dtype])

    def arange_new(start: Number, step: Number, count: int, dtype: DType) -> Any:
        exact = isinstance(start, int) and isinstance(step, int)
        wide = natives[int64] if exact else natives.get(float64, natives[float32])
        numbers = xp.arange(count, dtype=wide)
        return xp.astype(numbers * step + start, natives[dtype])

    add("cast", cast, ALL_DTYPES)
    add("clone", lambda input: input, ALL_DTYPES)  # what a store holds is never written to
    add(
        "fill_new",
        lambda shape, value, dtype: xp.full(shape, value, dtype=natives[dtype]),
        (*FLOATS, *HALVES),
    )
    real = tuple(d for d in ALL_DTYPES if not d.is_complex and d is not bool_)
    add("arange_new", arange_new, real)
    add("where", xp.where, ALL_DTYPES)


def _add_composed(runtime: ArrayApiRuntime, add: Add) -> None:
    """Add kernels of a few functions each."""
    xp = runtime.xp

    def sign(input: Any) -> Any:
        return xp.where(input == input, xp.sign(input), xp.zeros_like(input))

    add("sign", getattr(xp, "sign", _absent), INTEGERS, needs="sign")
    add("sign", sign, FLOATS, needs="sign zeros_like")
    add("conj_physical", getattr(xp, "conj", _absent), COMPLEXES, needs="conj")
    add("conj_physical", lambda input: input, (*REALS, *HALVES, bool_))
    add("relu", lambda input: xp.maximum(input, xp.zeros_like(input)), REALS, "maximum zeros_like")
    add("rsqrt", lambda input: 1 / xp.sqrt(input), FLOATS, needs="sqrt")
    add("sigmoid", lambda input: 1 / (1 + xp.exp(-input)), FLOATS, needs="exp")
    matmul = getattr(xp, "matmul", _absent)
    add("matmul", matmul, (*FLOATS, *COMPLEXES), needs="matmul")
    for op in ("floor", "rint"):
        add(op, lambda input: input, INTEGERS)


def _add_reductions(runtime: ArrayApiRuntime, add: Add) -> None:
    xp, natives = runtime.xp, runtime.natives

    def total(input: Any, dim: Shape, keepdim: bool) -> Any:
        return xp.sum(input, axis=dim, keepdims=keepdim, dtype=input.dtype) if dim else input

    def mean(input: Any, dim: Shape, keepdim: bool) -> Any:
        count = math.prod([input.shape[d] for d in dim])
        result = total(input, dim, keepdim)
        return result / xp.full((), count, dtype=result.dtype)

    def prod(input: Any, dim: Shape, keepdim: bool) -> Any:
        return xp.prod(input, axis=dim, keepdims=keepdim, dtype=input.dtype) if dim else input

    add("sum", total, NUMBERS, needs="sum")
    add("mean", mean, (*FLOATS, *COMPLEXES), needs="sum")
    add("prod", prod, NUMBERS, needs="prod")

    def truth(function: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(input: Any, dim: Shape, keepdim: bool) -> Any:
            return function(input, axis=dim, keepdims=keepdim) if dim else input != 0

        return kernel

    for op in ("any", "all"):
        kernel = truth(getattr(xp, op, _absent))
        add(op, kernel, [dtype for dtype in NUMBERS if dtype is not uint8], needs=op)

    for op, name in (("amax", "max"), ("amin", "min")):
        add(op, _extreme(getattr(xp, name, _absent)), REALS, needs=name)
    for op in ("argmax", "argmin"):
        function = getattr(xp, op, _absent)
        add(op, _place_of(xp, function, natives, checked=False), INTEGERS, needs=op)
        checked = _place_of(xp, function, natives, checked=True)
        add(op, checked, FLOATS, needs=f"{op} argmax any")


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(input: Any, dim: Shape, keepdim: bool) -> Any:
        return function(input, axis=dim, keepdims=keepdim) if dim else input

    return kernel


def _place_of(
    xp: Any, function: Callable[..., Any], natives: dict[DType, Any], *, checked: bool
) -> Callable[..., Any]:
    """Return the kernel of argmax or argmin; where `checked`, the first nan wins."""

    def kernel(input: Any, dim: int | None, keepdim: bool) -> Any:
        if not input.ndim or 0 in input.shape:
            kept = reduced_shape(input.shape, () if dim is None else (dim,), keepdim)
            return xp.zeros(kept if input.ndim else (), dtype=natives[int64])
        index = function(input, axis=dim, keepdims=keepdim)
        if checked:
            strange = input != input
            first = xp.argmax(xp.astype(strange, natives[uint8]), axis=dim, keepdims=keepdim)
            index = xp.where(xp.any(strange, axis=dim, keepdims=keepdim), first, index)
        return xp.astype(index, natives[int64])

    return kernel


def _add_places(runtime: ArrayApiRuntime, add: Add) -> None:
    """Add kernels that read at positions."""
    xp = runtime.xp

    def flip(input: Any, dims: Shape) -> Any:
        return xp.flip(input, axis=dims) if dims else input

    def gather(input: Any, dim: int, index: Any) -> Any:
        shape = index.shape
        if 0 in shape:
            return xp.zeros(shape, dtype=input.dtype)
        input = input if input.ndim else xp.reshape(input, (1,))
        index = index if index.ndim else xp.reshape(index, (1,))
        size = input.shape[dim]
        low, high = int(xp.min(index)), int(xp.max(index))
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise RuntimeError(
                f"index {wrong} is out of bounds for dimension {dim} with size {size}"
            )
        part = tuple(
            [slice(None) if d == dim else slice(0, index.shape[d]) for d in range(input.ndim)]
        )
        return xp.reshape(xp.take_along_axis(input[part], index, axis=dim), shape)

    add("flip", flip, ALL_DTYPES, needs="flip")
    add("cat", lambda tensors, dim: xp.concat(tensors, axis=dim), ALL_DTYPES)
    # The first is new in 2024.12.
    add("gather", gather, ALL_DTYPES, needs="take_along_axis min max")


def _add_along(runtime: ArrayApiRuntime, add: Add) -> None:
    """Add kernels that go along a dimension."""
    xp = runtime.xp

    def running(function: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(input: Any, dim: int) -> Any:
            return function(input, axis=dim, dtype=input.dtype) if input.ndim else input

        return kernel

    for op, name in (("cumsum", "cumulative_sum"), ("cumprod", "cumulative_prod")):
        # New in 2023.12 and 2024.12.
        add(op, running(getattr(xp, name, _absent)), NUMBERS, needs=name)
