"""Derivatives of special functions."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.arithmetic.pointwise import sgn
from tensorplug.core.ops.comparison import eq
from tensorplug.core.ops.elementary.exponential import exp, log, log1p
from tensorplug.core.ops.masking import where
from tensorplug.core.ops.special.bessel import bessel
from tensorplug.core.ops.special.error_functions import erfcx, logit_backward
from tensorplug.core.ops.special.gamma import digamma, lgamma, polygamma, zeta

from ..engine.derivatives import derivative
from ..vmap.vmap_rules import shared_rule
from .numeric import times_log_input
from .shape import fitted

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


_ROOT_HALF = math.sqrt(0.5)


def _unknown(g: Any) -> Any:
    raise NotImplementedError(
        "no derivative is known with respect to this argument: the order of igamma, igammac or "
        "zeta, or an argument of an orthogonal polynomial; detach() it if no gradient is wanted"
    )


def _over(value: Any, input: Any, limit: float) -> Any:
    """Return ``value / input``, and at 0 its limit."""
    at_zero = eq(input, 0)
    return where(at_zero, limit, value / where(at_zero, 1, input))


def _bessel_slope(input: Any, function: str) -> Any:
    def value(name: str) -> Any:
        return bessel(input, name)

    match function:
        case "j0":
            return -value("j1")
        case "j1":
            return value("j0") - _over(value("j1"), input, 0.5)
        case "y0":
            return -value("y1")
        case "y1":
            return value("y0") - value("y1") / input
        case "i0":
            return value("i1")
        case "i1":
            return value("i0") - _over(value("i1"), input, 0.5)
        case "i0e":
            return value("i1e") - sgn(input) * value("i0e")
        case "i1e":
            scaled = value("i1e")
            return value("i0e") - sgn(input) * scaled - _over(scaled, input, 0.5)
        case "k0":
            return -value("k1")
        case "k1":
            return -value("k0") - value("k1") / input
        case "k0e":
            return value("k0e") - value("k1e")
        case "k1e":
            scaled = value("k1e")
            return scaled - value("k0e") - scaled / input
        case "airy_ai":
            return value("airy_ai_prime")
        case _:
            return input * value("airy_ai")


def _igamma(g: Any, input: Any, other: Any) -> Any:
    return g * exp((input - 1) * log(other) - other - lgamma(input))


def _log_ndtr(g: Any, input: Any) -> Any:
    return g * (math.sqrt(2 / math.pi) / erfcx(input * -_ROOT_HALF))


DERIVATIVES = [
    derivative("bessel", input=lambda g, input, function: g * _bessel_slope(input, function)),
    derivative("digamma", input=lambda g, input: g * polygamma(1, input)),
    derivative("erf", input=lambda g, input: g * (exp(-input * input) * _TWO_OVER_ROOT_PI)),
    derivative("erfc", input=lambda g, input: g * (exp(-input * input) * -_TWO_OVER_ROOT_PI)),
    derivative("logit", input=lambda g, input, eps: logit_backward(g, input, eps)),
    derivative("erfinv", input=lambda g, result: g * (exp(result * result) / _TWO_OVER_ROOT_PI)),
    derivative("igamma", input=_unknown, other=_igamma),
    derivative("igammac", input=_unknown, other=lambda g, input, other: -_igamma(g, input, other)),
    derivative("lgamma", input=lambda g, input: g * digamma(input)),
    derivative("orthogonal_polynomial", input=_unknown, n=_unknown),
    derivative("polygamma", input=lambda g, n, input: g * polygamma(n + 1, input)),
    derivative("special_entr", input=lambda g, input: g * (-1 - log(input))),
    derivative(
        "special_erfcx",
        input=lambda g, input, result: g * (input * result * 2 - _TWO_OVER_ROOT_PI),
    ),
    derivative("special_log_ndtr", input=_log_ndtr),
    derivative(
        "special_ndtr",
        input=lambda g, input: g * (exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi))),
    ),
    derivative(
        "special_ndtri",
        input=lambda g, result: g * (exp(result * result * 0.5) * math.sqrt(2 * math.pi)),
    ),
    derivative(
        "special_xlog1py",
        input=lambda g, input, other, input_shape, input_dtype: times_log_input(
            g, input, other, input_shape, input_dtype, log1p, -1.0
        ),
        other=lambda g, input, other, other_shape, other_dtype: fitted(
            g * (input / (other + 1)), other_shape, other_dtype
        ),
    ),
    derivative(
        "special_zeta",
        input=_unknown,
        other=lambda g, input, other: g * (zeta(input + 1, other) * -input),
    ),
]


VMAP_RULES = [
    shared_rule("as_is", "bessel"),
    shared_rule("leading", "orthogonal_polynomial"),
]
