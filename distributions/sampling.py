"""Random numbers of the gamma family and binomial counts, from uniform and normal ones."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.autograd import Function, no_grad
from tensorplug.core.device.dtypes import finfo, float32, float64
from tensorplug.core.ops import (
    arange,
    igamma,
    igammac,
    rand,
    rand_like,
    randn_like,
    where,
    zeros_like,
)

_FEW = 16


def _marsaglia_tsang(concentration: Any) -> tuple[Any, Any]:
    """Draw gamma numbers by rejection (Marsaglia and Tsang 2000), in about 1.05 rounds.

    Below 1 a number of concentration + 1 is multiplied by U ** (1 / concentration), which may be too
    small for the dtype. Returned are the numbers, and the logarithms of these factors.
    """
    boosted = concentration < 1
    d = where(boosted, concentration + 1, concentration) - 1 / 3
    c = 1 / (9 * d).sqrt()
    result = zeros_like(d)
    left = d > 0  # not for NaN, which stays
    while bool(left.any()):
        x = randn_like(d)
        v = (1 + c * x) ** 3
        u = rand_like(d)
        fits = (v > 0) & (u.log() < 0.5 * x * x + d - d * v + d * v.clamp(min=1e-30).log())
        result = where(left & fits, d * v, result)
        left = left & ~fits
    power = where(boosted, 1 - rand_like(d), 1.0).log() / concentration
    return where(d > 0, result, math.nan), where(d > 0, power, math.nan)


def _implicit_slope(log_value: Any, concentration: Any) -> Any:
    """Return d log(value) / d concentration at a fixed probability (Figurnov et al. 2018).

    -(dF/da) / (dF/dx) / x, with logarithms of F or 1 - F, whichever is the smaller, in float64.
    """
    a, log_x = concentration.to(float64), log_value.to(float64)
    x = log_x.exp().clamp(min=finfo(float64).tiny)
    h = a * 1e-5
    log_density = (a - 1) * x.log() - x - a.lgamma()
    low = igamma(a, x)
    use_low = low < 0.5
    tail = where(use_low, low, igammac(a, x))

    def part(shape: Any) -> Any:
        return where(use_low, igamma(shape, x), igammac(shape, x)).log()

    slope = (part(a + h) - part(a - h)) / (2 * h)
    found = where(use_low, -slope, slope) * (tail.log() - log_density).exp()
    return where(x < 1e-3, _slope_of_series(a, x, log_x), found / x).to(log_value.dtype)


def _slope_of_series(a: Any, x: Any, log_x: Any) -> Any:
    """Return that slope where x is small and F might underflow.

    F is x ** a / gamma(a + 1) times the sum of a (-x) ** n / (n! (a + n)), here to x ** 3.
    """
    total = 1 - a * x * (1 / (a + 1) - x * (1 / (2 * (a + 2)) - x / (6 * (a + 3))))
    by_a = -x * (1 / (a + 1) ** 2 - x * (1 / (a + 2) ** 2 - x / (2 * (a + 3) ** 2)))
    return x.exp() / a * (total * ((a + 1).digamma() - log_x) - by_a)


def _widened(concentration: Any) -> Any:
    return concentration.to(float32) if concentration.dtype.itemsize == 2 else concentration


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        number, log_factor = _marsaglia_tsang(_widened(concentration))
        value = (number * log_factor.exp()).to(concentration.dtype)
        value = value.clamp(min=finfo(value.dtype).tiny)
        ctx.save_for_backward(value, concentration)
        return value

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        value, concentration = ctx.saved_tensors
        with no_grad():
            return grad * value * _implicit_slope(value.log(), concentration)


class _LogStandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        number, log_factor = _marsaglia_tsang(_widened(concentration))
        value = (number.log() + log_factor).to(concentration.dtype)
        ctx.save_for_backward(value, concentration)
        return value

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad,) = grad_outputs
        value, concentration = ctx.saved_tensors
        with no_grad():
            return grad * _implicit_slope(value, concentration)


def standard_gamma(concentration: Any) -> Any:
    """Return gamma numbers of rate 1; gradients flow to the concentration."""
    return _StandardGamma.apply(concentration)


def log_standard_gamma(concentration: Any) -> Any:
    """Return the logarithms of gamma numbers of rate 1, which may be too small for the dtype themselves."""
    return _LogStandardGamma.apply(concentration)


def _beta(a: Any, b: Any) -> Any:
    """Return beta numbers of whole `a` and `b`."""
    x, y = standard_gamma(a), standard_gamma(b)
    return x / (x + y)


def binomial(count: Any, probs: Any) -> Any:
    """Return counts of successes.

    A median of `count` uniform numbers is a beta number, so comparing it with the probability halves the
    count (Devroye 1986, X.4.3); the last few are drawn one by one.
    """
    n, p = count.to(float64), probs.to(float64)
    found = zeros_like(n)
    while bool((n > _FEW).any()):
        many = n > _FEW
        i = where(many, ((n + 1) / 2).floor(), 1.0)
        median = _beta(i, where(many, n + 1 - i, 1.0))
        below = many & (median <= p)
        above = many & ~below
        found = where(below, found + i, found)
        p = where(below, (p - median) / (1 - median), where(above, p / median, p))
        n = where(below, n - i, where(above, i - 1, n))
    draws = rand((_FEW, *n.shape), dtype=float64, device=n.device)
    places = arange(_FEW, device=n.device).reshape(_FEW, *[1] * n.ndim)
    return (found + ((draws < p) & (places < n)).sum(0)).to(probs.dtype)
