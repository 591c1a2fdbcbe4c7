"""Kullback-Leibler divergences, by pairs of types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorplug.core.ops import where, xlogy
from tensorplug.core.ops.linalg.triangular import linalg_solve_triangular
from tensorplug.core.tensor.shapes import broadcast_shapes

from .categorical import Categorical, OneHotCategorical
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Geometric, Poisson, _softplus
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma_family import Beta, Dirichlet, Exponential, Gamma
from .heavy_tails import InverseGamma, Kumaraswamy, Pareto
from .independent import Independent, sum_rightmost
from .location_scale import Cauchy, Laplace, Normal, Uniform
from .low_rank import LowRankMultivariateNormal
from .magnitudes import HalfCauchy, HalfNormal
from .multivariate_normal import MultivariateNormal
from .transformed import Gumbel, TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

_TABLE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_EULER = 0.57721566490153286060


def register_kl(type_p: Any, type_q: Any) -> Callable[[Any], Any]:
    """Return a decorator for the function of (p, q) that computes a pair's divergence.

    The nearest registered pair of base classes serves subclasses.

    Raises
    ------
    TypeError
        If one of the two is no class. It may be another base than ``Distribution``, as libraries have.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"Expected a subclass of Distribution but got {kind}")

    def register(function: Any) -> Any:
        _TABLE[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """Return the divergence of `p` from `q`, E_p[log p(x) - log q(x)], of the batch's shape.

    Raises
    ------
    NotImplementedError
        If no function is registered for the two types.

    Examples
    --------
    >>> from tensorplug.distributions import Normal
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    best = None
    for i, left in enumerate(type(p).__mro__):
        for j, right in enumerate(type(q).__mro__):
            if (left, right) in _TABLE and (best is None or max(i, j) < best[0]):
                best = max(i, j), _TABLE[left, right]
    if best is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return best[1](p, q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    yes = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    no = (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))
    yes = where(p.probs == 0, 0.0, where((q.probs == 0) & (p.probs > 0), math.inf, yes))
    no = where(p.probs == 1, 0.0, where((q.probs == 1) & (p.probs < 1), math.inf, no))
    return yes + no


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = where((q.probs == 0).expand_as(terms), math.inf, terms)
    return where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs() / q.scale
    return -ratio.log() + apart + ratio * (-(p.loc - q.loc).abs() / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, kl)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + b.lgamma()
        - a.lgamma()
        + (a - b) * a.digamma()
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._pair(), q._pair())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, kl)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc) / q.scale
    moment = (-apart + (ratio + 1).lgamma()).exp()
    return -ratio.log() + apart + ratio * _EULER + moment - (1 + _EULER)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    """Return the Bregman divergence of the log normalizer, between natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    parameters, normalizer, expected = p._statistics()
    kl = q._log_normalizer(*q._natural_params) - normalizer
    for ours, theirs, mean in zip(parameters, q._natural_params, expected, strict=True):
        term = (theirs - ours) * mean
        kl = kl - sum_rightmost(term, term.ndim - kl.ndim)
    return kl


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    together = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return together.log() - (4 * p.scale * q.scale).log()


# The divergence of functions of other numbers is the other numbers', if no two make one: a reciprocal, and
# the magnitude of numbers that lie symmetrically.


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: Any, q: Any) -> Any:
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Any:
    return _gamma(p.base_dist, q.base_dist)


@register_kl(Kumaraswamy, Kumaraswamy)
def _kumaraswamy(p: Any, q: Any) -> Any:
    if bool((p.concentration1 != q.concentration1).any()):
        raise NotImplementedError("KL of Kumaraswamy distributions with different concentration1")
    ratio = (
        q.concentration0 / p.concentration0
    )  # of exponential numbers, -log(1 - x ** concentration1)
    return ratio - 1 - ratio.log()


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            f"{list(p.event_shape)} and {list(q.event_shape)} cannot be computed"
        )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q)
    # The trace of q's precision times p's covariance.
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    distance = q.mahalanobis(p.loc - q.loc)
    apart = q._log_det() - p._log_det()
    return 0.5 * (apart + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    _check_events(p, q)
    n = p.event_shape[0]
    left, right = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    shape = (*broadcast_shapes(left.shape[:-2], right.shape[:-2]), n, n)
    relative = linalg_solve_triangular(right.expand(shape), left.expand(shape), upper=False)
    trace = (relative**2).sum((-2, -1))
    distance = q.mahalanobis(p.loc - q.loc)
    return 0.5 * (q._log_det() - p._log_det() + trace + distance - n)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("both must reinterpret the same number of batch dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of distributions with different transforms or event shapes")
    return kl_divergence(p.base_dist, q.base_dist)
