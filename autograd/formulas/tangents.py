"""Forward rules of core's ops, where the reverse formulas do not give them as cheaply."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.arithmetic.pointwise import sgn
from tensorplug.core.ops.elementary.circular import cos, sin
from tensorplug.core.ops.elementary.exponential import rsqrt
from tensorplug.core.ops.elementary.trigonometry import cosh, sinh

from ..tangents import holomorphic, linear, tangent
from .reductions import quotient


def _abs(t: Any, input: Any) -> Any:
    if not input.dtype.is_complex:
        return t * sgn(input)
    return (t * sgn(input).conj()).real


def _std(
    t: Any, input: Any, result: Any, input_shape: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    return quotient(_var(t, input, input_shape, dim, correction, keepdim), 2 * result)


def _var(t: Any, input: Any, input_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    from tensorplug.core.ops.statistics.variance import degrees_of_freedom, reciprocal

    scale = 2 * reciprocal(degrees_of_freedom(input_shape, dim, correction))
    products = (input - input.mean(dim, True)).conj() * t
    if products.dtype.is_complex:
        products = products.real
    return products.sum(dim, keepdim) * scale


def _softmax(t: Any, result: Any, dim: int) -> Any:
    weighted = t * result
    return weighted - result * weighted.sum(dim, True)


def _log_softmax(t: Any, result: Any, dim: int) -> Any:
    return t - (result.exp() * t).sum(dim, True)


TANGENTS = [
    # arithmetic
    tangent("add", input=lambda t: t, other=lambda t: t),
    tangent("sub", input=lambda t: t, other=lambda t: -t),
    tangent("mul", input=lambda t, other: t * other, other=lambda t, input: t * input),
    tangent(
        "true_divide",
        input=lambda t, other: t / other,
        other=lambda t, other, result: -t * (result / other),
    ),
    tangent("neg", input=lambda t: -t),
    tangent("square", input=lambda t, input: t * (input * 2)),
    tangent("abs", input=_abs),
    linear("conj_physical", "input"),
    linear("copy", "src"),
    # elementary functions
    tangent("acos", input=lambda t, input: -t * rsqrt(1 - input * input)),
    tangent("acosh", input=lambda t, input: t * (rsqrt(input + 1) * rsqrt(input - 1))),
    tangent("asin", input=lambda t, input: t * rsqrt(1 - input * input)),
    tangent("asinh", input=lambda t, input: t * rsqrt(input * input + 1)),
    tangent("atan", input=lambda t, input: t / (input * input + 1)),
    tangent("atanh", input=lambda t, input: t / (1 - input * input)),
    tangent("cos", input=lambda t, input: -t * sin(input)),
    tangent("cosh", input=lambda t, input: t * sinh(input)),
    tangent("exp", input=lambda t, result: t * result),
    tangent("expm1", input=lambda t, result: t * (result + 1)),
    tangent("log", input=lambda t, input: t / input),
    tangent("log1p", input=lambda t, input: t / (input + 1)),
    tangent("rsqrt", input=lambda t, result: t * (result * result * result * -0.5)),
    tangent("sigmoid", input=lambda t, result: t * (result * (1 - result))),
    tangent("sin", input=lambda t, input: t * cos(input)),
    tangent("sinh", input=lambda t, input: t * cosh(input)),
    tangent("sqrt", input=lambda t, result: t / (result * 2)),
    tangent("tan", input=lambda t, result: t * (result * result + 1)),
    tangent("tanh", input=lambda t, result: t * (1 - result * result)),
    *holomorphic("where", "power"),
    # products
    tangent("matmul", input=lambda t, other: t @ other, other=lambda t, input: input @ t),
    # reductions
    linear("sum", "input"),
    linear("mean", "input"),
    tangent("var", input=_var),
    tangent("std", input=_std),
    tangent("softmax", input=_softmax),
    tangent("log_softmax", input=_log_softmax),
    # copies, views, rearrangements
    *[
        linear(op, "input")
        for op in (
            "as_strided",
            "basic_index",
            "cast",
            "clone",
            "clone_strided",
            "cumsum",
            "diagonal",
            "expand",
            "fft_c2c",
            "fft_c2r",
            "fft_r2c",
            "flip",
            "gather",
            "index",
            "permute",
            "place",
            "to_device",
            "unfold",
            "view",
            "view_as_complex",
            "view_as_real",
        )
    ],
    linear("roll", "input"),
    linear("index_select", "input"),
    linear("index_add", "input", "source"),
    linear("index_copy", "input", "source"),
    linear("tril", "input"),
    linear("triu", "input"),
    linear("cat", "tensors"),
    linear("stack", "tensors"),
    linear("index_put", "input", "values"),
]
