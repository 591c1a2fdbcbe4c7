"""Distributions of positive numbers with heavy tails, and of ratios: from torch's list, by their formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import full_like, ones_like, where

from . import constraints
from .distribution import Distribution
from .gamma_family import Exponential, Gamma
from .location_scale import Uniform, uniform_numbers
from .transformed import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all

__all__ = [
    "FisherSnedecor",
    "GeneralizedPareto",
    "InverseGamma",
    "Kumaraswamy",
    "Pareto",
]


def _open_uniform(distribution: Distribution, sample_shape: Sequence[int], like: Any) -> Any:
    """Return uniform numbers of (0, 1), of the shape of a distribution's samples."""
    u = uniform_numbers(distribution._extended_shape(sample_shape), like)
    return u.clamp(min=finfo(u.dtype).tiny, max=1 - finfo(u.dtype).eps / 2)


class Pareto(TransformedDistribution):
    """The Pareto distribution: numbers from `scale` on, of density proportional to x ** -(alpha + 1)."""

    arg_constraints: ClassVar[Any] = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return -(self.alpha * (self.scale / value).log()).expm1()

    def icdf(self, value: Any) -> Any:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of what lies beyond a high threshold `loc`.

    ``P(X > x) = (1 + concentration (x - loc) / scale) ** (-1 / concentration)``, an exponential one where
    `concentration` is 0.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        lower = self.loc
        upper = where(self.concentration < 0, lower - self.scale / self.concentration, math.inf)
        return constraints.interval(lower, upper)

    def _flat(self) -> Any:
        """Return where the concentration is 0, and the concentration with 1 in these places."""
        flat = self.concentration.abs() < 1e-12
        return flat, where(flat, 1.0, self.concentration)

    def _log_survival(self, value: Any) -> Any:
        z = (value - self.loc) / self.scale
        flat, k = self._flat()
        return where(flat, -z, -(k * z).log1p() / k)

    @property
    def mean(self) -> Any:
        k = self.concentration
        return where(k < 1, self.loc + self.scale / (1 - k), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        k = self.concentration
        return where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(_open_uniform(self, sample_shape, self.loc))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return (1 + self.concentration) * self._log_survival(value) - self.scale.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return -self._log_survival(value).expm1()

    def icdf(self, value: Any) -> Any:
        rest = (-value).log1p()
        flat, k = self._flat()
        return self.loc + self.scale * where(flat, -rest, (-k * rest).expm1() / k)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1


class InverseGamma(TransformedDistribution):
    """The distribution of the reciprocal of a gamma number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    base_dist: Any

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-1), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def concentration(self) -> Any:
        """The shape of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """Their rate, which is the scale of their reciprocals."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.base_dist.log_prob(value.reciprocal()) - 2 * value.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - self.base_dist.cdf(value.reciprocal())

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution on (0, 1), much like the beta distribution: 1 - (1 - x ** a) ** b."""

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = ones_like(self.concentration0.detach())
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1, -one),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        base = Uniform(full_like(one, 0), one, validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, order: int) -> Any:
        a, b = self.concentration1, self.concentration0
        share = 1 + order / a
        return (b.log() + share.lgamma() + b.lgamma() - (share + b).lgamma()).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        place = (((a - 1) / (a * b - 1)).log() / a).exp()
        return where((a < 1) | (b < 1), math.nan, place)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1).square()

    sample = Distribution.sample  # what rsample returns, without a gradient

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(_open_uniform(self, sample_shape, self.concentration1))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rest = (-(value**a)).log1p()
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * rest

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return -(self.concentration0 * (-(value**self.concentration1)).log1p()).expm1()

    def icdf(self, value: Any) -> Any:
        inner = -((-value).log1p() / self.concentration0).expm1()
        return inner ** self.concentration1.reciprocal()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + 0.57721566490153286060
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        m, n = self.df1, self.df2
        found = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return where(n > 4, found, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        upper, lower = [
            Gamma(df / 2, df / 2, validate_args=False).rsample(sample_shape)
            for df in (self.df1, self.df2)
        ]
        return (upper / lower).clamp(min=finfo(lower.dtype).tiny)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
