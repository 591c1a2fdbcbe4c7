"""Kernels of core's ops that take several steps elsewhere: the compiled ones go through memory once."""

from __future__ import annotations

import math
from sys import float_info
from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import KernelTable

from .._dtypes import COMPLEX, FLOATS, NATIVES, SINGLE_AND_DOUBLE, WHOLE, are_exact
from ..pointwise import Unary
from ..pointwise_fused import Fused
from ..pointwise_regions import with_loop

_finfo: Any = ml_dtypes.finfo
_LARGEST = {NATIVES[dtype]: float(_finfo(NATIVES[dtype]).max) for dtype in FLOATS}

_ENDLESS = (-np.inf, np.inf)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name, dtypes in (("hypot", FLOATS), ("logaddexp", (*FLOATS, *COMPLEX))):
        table.add(name, _of_two(name), dtypes=dtypes, out=True)
    for name in ("frac", "isinf", "isfinite"):
        table.add(name, _of_one(name), dtypes=FLOATS, out=True)
    # Of half precision torch rounds the steps of these, as their bodies do.
    for op, name in (("sinc", "sinc"), ("special_entr", "entr")):
        table.add(op, _of_one(name), dtypes=SINGLE_AND_DOUBLE)
    for op, name in (("xlogy", "xlogy"), ("special_xlog1py", "xlog1py")):
        table.add(op, _of_two_or_a_number(name), dtypes=SINGLE_AND_DOUBLE)
    # Of half precision the quotient is rounded first.
    table.add(
        "trunc_divide", _of_two_or_a_number("trunc_divide"), dtypes=SINGLE_AND_DOUBLE, out=True
    )
    table.add("special_ndtr", _of_one("ndtr"), dtypes=FLOATS)
    table.add("logaddexp2", _of_two_or_a_number("logaddexp2"), dtypes=FLOATS)
    scaled, nearer = Fused("add_scaled").call, Fused("lerp").call
    interpolated = Fused("lerp_tensor").call
    product, quotient = Fused("addcmul").call, Fused("addcdiv").call
    within, between = Fused("clamp_numbers").call, Fused("clamp_tensors").call
    slope = Fused("clamp_gradient").call
    replaced = Fused("nan_to_num").call
    whole, decimal = Unary("rint"), Fused("round")
    logit_of, logit_slope = Fused("logit").call, Fused("logit_gradient").call

    @table.kernel("add_scaled", dtypes=FLOATS, out=True)
    def add_scaled(input: Any, other: Any, alpha: float, out: Any = None) -> Any:
        return scaled((input, other), (alpha,), out)

    @table.kernel("lerp", dtypes=FLOATS, out=True)
    def lerp(input: Any, end: Any, weight: Any, out: Any = None) -> Any:
        if isinstance(weight, np.ndarray):
            return interpolated((input, end, weight), (), out)
        return nearer((input, end), _weight(weight), out)

    @table.kernel("lerp", dtypes=COMPLEX, out=True)
    def lerp_complex(input: Any, end: Any, weight: Any, out: Any = None) -> Any:
        if isinstance(weight, np.ndarray):
            return interpolated((input, end, weight), (), out)
        distance, near = _weight(weight.real)
        return nearer((input, end), (distance, weight.imag, near), out)

    @table.kernel("addcmul", dtypes=FLOATS, out=True)
    def addcmul(input: Any, tensor1: Any, tensor2: Any, value: float, out: Any = None) -> Any:
        return product((input, _like(input, tensor1), _like(input, tensor2)), (value,), out)

    @table.kernel("add_scaled", dtypes=COMPLEX, out=True)
    def add_scaled_complex(input: Any, other: Any, alpha: complex, out: Any = None) -> Any:
        return scaled((input, other), (alpha.real, alpha.imag), out)

    @table.kernel("addcmul", dtypes=COMPLEX, out=True)
    def addcmul_complex(
        input: Any, tensor1: Any, tensor2: Any, value: complex, out: Any = None
    ) -> Any:
        arrays = (input, _like(input, tensor1), _like(input, tensor2))
        return product(arrays, (value.real, value.imag), out)

    @table.kernel("addcdiv", dtypes=FLOATS, out=True)
    def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: float, out: Any = None) -> Any:
        return quotient((input, _like(input, tensor1), _like(input, tensor2)), (value,), out)

    @table.kernel("clamp", dtypes=FLOATS, out=True)
    def clamp(input: Any, min: Any, max: Any, out: Any = None) -> Any:
        if _are_numbers(min, max):
            return within((input,), (min, max), out)
        return between((input, _like(input, min), _like(input, max)), (), out)

    @table.kernel("clamp", dtypes=WHOLE, out=True)
    def clamp_whole(input: Any, min: int, max: int, out: Any = None) -> Any:
        if are_exact(min, max):
            return within((input,), (min, max), out)
        return between((input, _like(input, min), _like(input, max)), (), out)

    @table.kernel("clamp_backward", dtypes=FLOATS)
    def clamp_gradient(g: Any, input: Any, min: Any, max: Any) -> Any:
        if _are_numbers(min, max):
            return slope((g, input), (min, max))
        return np.where((input >= min) & (input <= max), g, g.dtype.type(0))

    @table.kernel("nan_to_num", dtypes=FLOATS, out=True)
    def nan_to_num(
        input: Any,
        nan: float | None,
        posinf: float | None,
        neginf: float | None,
        out: Any = None,
    ) -> Any:
        most = _LARGEST[input.dtype]
        numbers = (
            0.0 if nan is None else nan,
            most if posinf is None else posinf,
            -most if neginf is None else neginf,
        )
        return replaced((input,), numbers, out)

    @table.kernel("round", dtypes=FLOATS, out=True)
    def round_to(input: Any, decimals: int, out: Any = None) -> Any:
        if decimals == 0:
            return whole.call(input, out)
        return decimal.call((input,), _power_of_ten(decimals), out)

    with_loop(
        round_to,
        lambda input, decimals: (
            (decimal, (input,), _power_of_ten(decimals)) if decimals else (whole, (input,), ())
        ),
    )

    loops = {name: Fused(name) for name in ("add_scaled", "lerp", "lerp_tensor", "clamp_numbers")}
    with_loop(
        add_scaled, lambda input, other, alpha: (loops["add_scaled"], (input, other), (alpha,))
    )
    with_loop(
        lerp,
        lambda input, end, weight: (
            (loops["lerp"], (input, end), _weight(weight))
            if weight.__class__ in _NUMBERS
            else (loops["lerp_tensor"], (input, end, weight), ())
        ),
    )
    with_loop(addcmul, _of_three("addcmul"))
    with_loop(addcdiv, _of_three("addcdiv"))
    bounded: Any = ((clamp, _are_numbers), (clamp_whole, are_exact))
    for kernel, fit in bounded:
        with_loop(
            kernel,
            lambda input, min, max, fit=fit: (
                (loops["clamp_numbers"], (input,), (min, max)) if fit(min, max) else None
            ),
        )

    @table.kernel("logit", dtypes=SINGLE_AND_DOUBLE, out=True)
    def logit(input: Any, eps: float | None, out: Any = None) -> Any:
        return logit_of((input,), _ENDLESS if eps is None else (eps, 1 - eps), out)

    @table.kernel("logit_backward", dtypes=SINGLE_AND_DOUBLE)
    def logit_gradient(g: Any, input: Any, eps: float | None) -> Any:
        beyond = (0.0, 1.0, np.nan) if eps is None else (eps, 1 - eps, 0.0)
        return logit_slope((g, input), beyond)


def _power_of_ten(decimals: int) -> tuple[float, bool]:
    """Return by what is scaled, and whether by multiplication."""
    places = abs(decimals)
    return 10.0**places if places <= float_info.max_10_exp else math.inf, decimals > 0


def _weight(weight: Any) -> tuple[float, bool]:
    """Return the distance from the nearer end, and whether that is the first one."""
    near = -0.5 < weight < 0.5
    return weight if near else weight - 1, near


def _of_one(name: str) -> Any:
    loop = Fused(name)
    call = loop.call
    return with_loop(
        lambda input, out=None: call((input,), (), out), lambda input: (loop, (input,), ())
    )


def _of_two(name: str) -> Any:
    loop = Fused(name)
    call = loop.call
    return with_loop(
        lambda input, other, out=None: call((input, other), (), out),
        lambda input, other: (loop, (input, other), ()),
    )


def _of_three(name: str) -> Any:
    loop = Fused(name)
    return lambda input, first, second, value: (loop, (input, first, second), (value,))


def _of_two_or_a_number(name: str) -> Any:
    call = Fused(name).call

    def kernel(input: Any, other: Any, out: Any = None) -> Any:
        if not isinstance(input, np.ndarray):
            input = _like(other, input)
        elif other.__class__ is not np.ndarray or other.dtype is not input.dtype:
            other = _like(input, other)
        return call((input, other), (), out)

    return kernel


def _are_numbers(min: Any, max: Any) -> bool:
    """Return whether both bounds are numbers, and none is nan, which wins over every element."""
    return min.__class__ in _NUMBERS and max.__class__ in _NUMBERS and min == min and max == max


_NUMBERS = frozenset({float, int, bool})


def _like(input: Any, value: Any) -> Any:
    """Return an array, which may be of integers, or a number in the dtype of `input`."""
    return np.asarray(value, input.dtype)
