"""Distributions of a place and a width: normal, Laplace, Cauchy, uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import full_like, rand, randn

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Cauchy", "Laplace", "Normal", "Uniform"]

_LOG_2PI = math.log(2 * math.pi)


def uniform_numbers(shape: Sequence[int], like: Any) -> Any:
    """Return uniform numbers of [0, 1) on the device and of the dtype of a tensor."""
    return rand(tuple(shape), dtype=like.dtype, device=like.device)


class _LocationScale(Distribution):
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _standard(self, value: Any) -> Any:
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Normal(0.0, 1.0).log_prob(tp.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0

    @property
    def variance(self) -> Any:
        return self.scale**2

    @property
    def stddev(self) -> Any:
        return self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Any) -> Any:
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - 0.5 * _LOG_2PI

    def cdf(self, value: Any) -> Any:
        return 0.5 * (1 + (self._standard(value) * math.sqrt(0.5)).erf())

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * _LOG_2PI + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.loc / self.scale**2, -0.5 / self.scale**2)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()


class Laplace(_LocationScale):
    """The Laplace distribution of mean `loc`, its density falling as ``exp(-|x - loc| / scale)``."""

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = uniform_numbers(self._extended_shape(sample_shape), self.loc)
        # Off -1, whose logarithm is infinite.
        u = (2 * u - 1).clamp(min=finfo(u.dtype).eps - 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Any) -> Any:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Any) -> Any:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """The Cauchy distribution of median `loc`; it has no mean, and `scale` is half of its width."""

    @property
    def mean(self) -> Any:
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Any:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = uniform_numbers(self._extended_shape(sample_shape), self.loc)
        return self.icdf(u.clamp(min=finfo(u.dtype).tiny))

    def log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - self.scale.log() - (self._standard(value) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """The uniform distribution from `low` up to `high`, which is left out."""

    arg_constraints: ClassVar[Any] = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Any:
        return full_like(self.low, math.nan)

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = uniform_numbers(self._extended_shape(sample_shape), self.low)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return (self.high - self.low).log()
