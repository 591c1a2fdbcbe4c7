"""Divergences between distributions of numbers of different types.

``KL(p || q) = -H(p) - E_p[log q(x)]``, and the expectation follows from a few moments of p: so there is one
table of moments, and one of expected log densities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from tensorplug.core.ops import erf, full_like, where, xlogy
from tensorplug.core.tensor.predicates import is_tensor

from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Poisson
from .distribution import Distribution
from .gamma_family import Beta, Exponential, Gamma
from .heavy_tails import Pareto
from .kl import _EULER, register_kl
from .location_scale import Laplace, Normal, Uniform
from .transformed import Gumbel

__all__: list[str] = []

T = TypeVar("T")


def _x_log_x(x: Any) -> Any:
    return xlogy(x, x)


def _gamma_log(p: Any) -> Any:
    return p.concentration.digamma() - p.rate.log()


def _beta_log(own: Any, p: Any) -> Any:
    return own.digamma() - (p.concentration1 + p.concentration0).digamma()


def _uniform_log(low: Any, high: Any) -> Any:
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


#: E[log x].
_LOG: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: _beta_log(p.concentration1, p),
    Exponential: lambda p: -p.rate.log() - _EULER,
    Gamma: _gamma_log,
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _uniform_log(p.low, p.high),
}
#: E[log(1 - x)].
_LOG_REST: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: _beta_log(p.concentration0, p),
    Uniform: lambda p: _uniform_log(1 - p.high, 1 - p.low),
}
#: E[exp(-t x)].
_DECAY: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate) ** -p.concentration,
    Normal: lambda p, t: (0.5 * (p.scale * t) ** 2 - p.loc * t).exp(),
    Uniform: lambda p, t: ((-p.low * t).exp() - (-p.high * t).exp()) / ((p.high - p.low) * t),
}


def _known(table: dict[type, T], distribution: Distribution) -> T:
    """Return what a table has for a distribution's class or the next above it."""
    return next(table[kind] for kind in type(distribution).__mro__ if kind in table)


def _of_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return (a - 1) * _known(_LOG, p)(p) + (b - 1) * _known(_LOG_REST, p)(p) - norm


def _of_continuous_bernoulli(p: Any, q: Any) -> Any:
    return p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()


def _of_exponential(p: Any, q: Any) -> Any:
    return q.rate.log() - q.rate * p.mean


def _of_gamma(p: Any, q: Any) -> Any:
    a, b = q.concentration, q.rate
    return a * b.log() - a.lgamma() + (a - 1) * _known(_LOG, p)(p) - b * p.mean


def _of_gumbel(p: Any, q: Any) -> Any:
    decay = (q.loc / q.scale).exp() * _known(_DECAY, p)(p, q.scale.reciprocal())
    return (q.loc - p.mean) / q.scale - decay - q.scale.log()


def _of_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    ratio = apart / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio**2).exp()
    distance = distance + apart * erf(ratio / math.sqrt(2))
    return -(2 * q.scale).log() - distance / q.scale


def _of_normal(p: Any, q: Any) -> Any:
    square = p.variance + (p.mean - q.loc) ** 2
    return -0.5 * math.log(2 * math.pi) - q.scale.log() - square / (2 * q.scale**2)


def _of_pareto(p: Any, q: Any) -> Any:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _known(_LOG, p)(p)


def _of_uniform(p: Any, q: Any) -> Any:
    return -(q.high - q.low).log() + 0 * p.mean


#: E_p[log q(x)], by the type of q, and the types of p that it is known for where their support is within q's.
_EXPECTED: dict[type, tuple[Callable[[Any, Any], Any], tuple[type, ...]]] = {
    Beta: (_of_beta, (Uniform,)),
    ContinuousBernoulli: (_of_continuous_bernoulli, (Beta, Uniform)),
    Exponential: (_of_exponential, (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)),
    Gamma: (_of_gamma, (Beta, Exponential, Pareto, Uniform)),
    Gumbel: (_of_gumbel, (Exponential, Gamma, Normal, Uniform)),
    Laplace: (_of_laplace, (Normal,)),
    Normal: (
        _of_normal,
        (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    ),
    Pareto: (_of_pareto, (Uniform,)),
    Uniform: (_of_uniform, (Beta, ContinuousBernoulli)),
}


def _bounds(distribution: Distribution) -> tuple[Any, Any]:
    support = distribution.support
    low = getattr(support, "lower_bound", -math.inf)
    return low, getattr(support, "upper_bound", math.inf)


def _divergence(p: Any, q: Any) -> Any:
    """Return infinity where p has values that q has not, else what the moments say."""
    low, high = _bounds(p)
    q_low, q_high = _bounds(q)
    beyond = (low < q_low) | (high > q_high)
    if not is_tensor(beyond) and beyond:
        return full_like(p.mean, math.inf)
    found = -p.entropy() - _known(_EXPECTED, q)[0](p, q)
    return where(beyond, math.inf, found) if is_tensor(beyond) else found


_NEVER_WITHIN: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}

for _q, (_, _within) in _EXPECTED.items():
    for _p in _within:
        register_kl(_p, _q)(_divergence)
for _p, _others in _NEVER_WITHIN.items():
    for _q in _others:
        register_kl(_p, _q)(lambda p, _: full_like(p.mean, math.inf))


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
