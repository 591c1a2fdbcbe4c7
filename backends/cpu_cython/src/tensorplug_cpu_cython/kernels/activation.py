"""Activations, and the products of a gradient with their derivatives, each in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import pointwise
from .._dtypes import FLOATS, WHOLE, are_exact
from ..pointwise_fused import Fused
from ..pointwise_regions import with_loop

_PLAIN = ("silu", "logsigmoid", "mish", "hardsigmoid", "hardswish")
_WITH_NUMBERS = ("leaky_relu", "elu", "softplus", "hardtanh", "threshold")

# The loops that are not named as the ops that they serve.
_LOOPS = {"logsigmoid": "log_sigmoid"}

#: The loops that serve nn's ops.
NAMES = frozenset(
    [
        *[_LOOPS.get(name, name) for name in _PLAIN],
        *_WITH_NUMBERS,
        "gelu",
        "gelu_tanh",
        *[name for name in pointwise.names("binary") if name.endswith(("_gradient", "_backward"))],
    ]
)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in _PLAIN:
        table.add(name, pointwise.Unary(_LOOPS.get(name, name)).call, dtypes=FLOATS, out=True)
    for name in _WITH_NUMBERS:
        table.add(name, _with_numbers(name), dtypes=FLOATS, out=True)
    for name, otherwise in (("hardtanh", np.clip), ("threshold", _above)):
        table.add(name, _with_whole_numbers(name, otherwise), dtypes=WHOLE)
    forms = {"none": pointwise.Unary("gelu"), "tanh": pointwise.Unary("gelu_tanh")}
    gelu = with_loop(
        lambda input, approximate: forms[approximate].call(input),
        lambda input, approximate: (forms[approximate], (input,), ()),
    )
    table.add("gelu", gelu, dtypes=FLOATS)
    slopes = {
        "none": pointwise.Binary("gelu_gradient").call,
        "tanh": pointwise.Binary("gelu_tanh_backward").call,
    }
    table.add(
        "gelu_backward", lambda g, input, approximate: slopes[approximate](g, input), dtypes=FLOATS
    )
    for name in ("silu", "logsigmoid", "hardsigmoid", "hardswish"):
        loop = f"{_LOOPS.get(name, name)}_gradient"
        table.add(f"{name}_backward", pointwise.Binary(loop).call, dtypes=FLOATS)
    table.add("mish_backward", pointwise.Binary("mish_backward").call, dtypes=FLOATS)
    for name in ("leaky_relu", "elu", "softplus", "hardtanh"):
        table.add(f"{name}_backward", _slope_with_numbers(f"{name}_gradient"), dtypes=FLOATS)

    for name in ("softshrink", "hardshrink"):
        table.add(name, _shrinking(name), dtypes=FLOATS)
    table.add("hardshrink_backward", _shrinking("shrink_gradient"), dtypes=FLOATS)

    bent = Fused("prelu").call

    @table.kernel(dtypes=FLOATS)
    def prelu(input: Any, weight: Any) -> Any:
        if weight.ndim and input.ndim >= 2:
            weight = weight.reshape(-1, *[1] * (input.ndim - 2))
        elif not input.ndim:
            weight = weight.reshape(())
        return bent((input, weight))

    gated, slope = Fused("gated").call, Fused("gated_backward").call

    @table.kernel(dtypes=FLOATS)
    def glu(input: Any, dim: int) -> Any:
        return gated(_halves(input, dim))

    @table.kernel(dtypes=FLOATS)
    def glu_backward(g: Any, input: Any, dim: int) -> Any:
        result = np.empty(input.shape, input.dtype)
        to_input, to_gate = _halves(result, dim)
        values, gates = _halves(input, dim)
        gated((g, gates), (), to_input)
        slope((g, values, gates), (), to_gate)
        return result


def _shrinking(name: str) -> Any:
    """Return a kernel of (array…, lambd)."""
    loop = Fused(name)
    call = loop.call
    return with_loop(
        lambda *arguments: call(arguments[:-1], arguments[-1:]),
        lambda *arguments: (loop, arguments[:-1], arguments[-1:]),
    )


def _halves(array: Any, dim: int) -> tuple[Any, Any]:
    before = (slice(None),) * (dim % array.ndim)
    middle = array.shape[dim] // 2
    return array[(*before, slice(middle))], array[(*before, slice(middle, None))]


_KEPT = 100


def _with_numbers(name: str) -> Any:
    """Return a kernel of (input, numbers…); the loops of some numbers are kept."""
    loops: dict[Any, Any] = {}

    def kernel(input: Any, *numbers: float, out: Any = None) -> Any:
        key = numbers if all(numbers) else repr(numbers)  # 0.0 and -0.0 are equal
        loop = loops.get(key)
        if loop is None:
            if len(loops) >= _KEPT:
                loops.clear()
            loop = loops[key] = pointwise.Unary(name, None, numbers).call
        return loop(input, out)

    return with_loop(
        kernel, lambda input, *numbers: (pointwise.Unary(name, None, numbers), (input,), ())
    )


def _with_whole_numbers(name: str, otherwise: Any) -> Any:
    """Return a kernel of integers; numbers that double hasn't are for a function of NumPy's."""
    kernel = _with_numbers(name)

    def run(input: Any, *numbers: int) -> Any:
        return (kernel if are_exact(*numbers) else otherwise)(input, *numbers)

    return run


def _above(input: Any, threshold: int, value: int) -> Any:
    return np.where(input > threshold, input, input.dtype.type(value))


def _slope_with_numbers(name: str) -> Any:
    """Return a kernel of (gradient, input, numbers…)."""
    loops: dict[Any, Any] = {}

    def kernel(g: Any, input: Any, *numbers: float) -> Any:
        key = numbers if all(numbers) else repr(numbers)  # 0.0 and -0.0 are equal
        loop = loops.get(key)
        if loop is None:
            if len(loops) >= _KEPT:
                loops.clear()
            loop = loops[key] = pointwise.Binary(name, None, numbers).call
        return loop(g, input)

    return with_loop(
        kernel, lambda g, input, *numbers: (pointwise.Binary(name, None, numbers), (g, input), ())
    )
