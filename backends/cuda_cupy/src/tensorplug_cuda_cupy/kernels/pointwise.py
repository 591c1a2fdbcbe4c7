"""Pointwise kernels where CuPy's function differs from the op's declaration, or has no bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensorplug.plugin import COMPLEXES, FLOATS, INTEGRAL, DType, KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

from .. import sources
from .._cupy import cp
from ..dtypes import BFLOAT16, HALVES, NATIVES, SINGLE_AND_DOUBLE
from . import activation

_BFLOAT16 = (dtype_named("bfloat16"),)


@cache
def _elementwise(function: str) -> Any:
    """Return a function of sources/elementwise.cuh as a kernel over arrays that broadcast."""
    preamble = (sources.FOLDER / "elementwise.cuh").read_text("utf-8")
    return cp.ElementwiseKernel(
        "T a, T b",
        "T result",
        f"result = {function}(a, b)",
        f"tensorplug_{function}",
        preamble=preamble,
    )


def _binary(function: str) -> Callable[..., Any]:
    def kernel(input: Any, other: Any, out: Any = None) -> Any:
        compute = _elementwise(function)
        return compute(input, other) if out is None else compute(input, other, out)

    return kernel


log_of_sum = _binary("log_of_sum")


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add these kernels to `table`, above the shared ones."""
    for op, function in (
        ("remainder", "float_remainder"),
        ("floor_divide", "float_floor_divide"),
    ):
        kernel = _binary(function)
        table.add(op, kernel, dtypes=SINGLE_AND_DOUBLE, out=True, priority=1)
        table.add(op, namespace.through_float32(kernel), dtypes=HALVES, priority=1)
    table.add("bitwise_left_shift", _binary("shifted_left"), out=True, priority=1)
    table.add("bitwise_right_shift", _binary("shifted_right"), out=True, priority=1)
    raised = _binary("raised")
    table.add("pow", raised, dtypes=(*SINGLE_AND_DOUBLE, *COMPLEXES), out=True, priority=1)
    table.add("pow", namespace.through_float32(raised), dtypes=HALVES, priority=1)
    table.add("pow", _binary("whole_power"), dtypes=INTEGRAL, out=True, priority=1)
    table.add("fmod", whole_fmod, dtypes=INTEGRAL, out=True, priority=1)
    table.add("relu", activation.relu, dtypes=FLOATS, out=True, priority=1)
    table.add("relu_backward", activation.relu_backward, dtypes=FLOATS)
    table.add("sign", sign, dtypes=FLOATS, priority=1)
    table.add("where", choose_bfloat16, dtypes=_BFLOAT16, priority=1)
    table.add("fill_new", fill_new, dtypes=_BFLOAT16, priority=1)
    table.add("tril", tril, priority=1)
    table.add("triu", triu, priority=1)
    for op in ("frexp", "any", "all", "nonzero"):
        shared = next(k.function for k in table.kernels if k.op == op and k.dtypes is None)
        table.add(op, namespace.through_float32(shared), dtypes=_BFLOAT16, priority=1)


def whole_fmod(input: Any, other: Any, out: Any = None) -> Any:
    """Return the remainder of truncated division of integers; CuPy goes through float64."""
    if input.size and not other.all():  # waits for the device, as the error has to be raised here
        raise RuntimeError("ZeroDivisionError")
    return _binary("whole_fmod")(input, other, out)


def sign(input: Any) -> Any:
    """Return 1, 0 or -1 in the dtype of `input`; 0 of NaN."""
    return (input > 0).astype(input.dtype) - (input < 0).astype(input.dtype)


def choose_bfloat16(condition: Any, input: Any, other: Any) -> Any:
    """Return `input` where the condition holds, else `other`, by their bits."""
    bits = np.dtype(np.uint16)
    return cp.where(condition, input.view(bits), other.view(bits)).view(BFLOAT16)


def fill_new(shape: Shape, value: Any, dtype: DType) -> Any:
    """Return an array of one value, by its bits."""
    bits = int(np.array(value, BFLOAT16).view(np.uint16))
    return cp.full(shape, bits, np.uint16).view(NATIVES[dtype])


def tril(input: Any, diagonal: int) -> Any:
    """Return the part of matrices on and below a diagonal."""
    return _masked(input, cp.tri(*input.shape[-2:], diagonal, bool))


def triu(input: Any, diagonal: int) -> Any:
    """Return the part of matrices on and above a diagonal."""
    return _masked(input, ~cp.tri(*input.shape[-2:], diagonal - 1, bool))


def _masked(input: Any, kept: Any) -> Any:
    if input.dtype == BFLOAT16:
        return choose_bfloat16(kept, input, cp.zeros((), BFLOAT16))
    return cp.where(kept, input, cp.zeros((), input.dtype))
