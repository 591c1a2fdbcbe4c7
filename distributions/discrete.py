"""Distributions over whole numbers: Bernoulli, binomial, geometric, Poisson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import (
    arange,
    bernoulli,
    full_like,
    logaddexp,
    poisson,
    where,
    xlogy,
    zeros_like,
)

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .location_scale import uniform_numbers
from .sampling import binomial
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Bernoulli", "Binomial", "Geometric", "Poisson"]


def _softplus(x: Any) -> Any:
    return logaddexp(x, zeros_like(x))


class _Odds(Distribution):
    """Either probabilities or log odds."""

    def _set_odds(self, probs: Any, logits: Any, *beside: Any) -> Any:
        """Keep the one that is given, and return it after what stands beside it, in one shape."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name = "logits" if probs is None else "probs"
        made = broadcast_all(*beside, logits if probs is None else probs)
        self.__dict__[name] = made[-1]
        return made

    @property
    def _param(self) -> Any:
        return self.probs if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities, or of the log odds."""
        return self._param.shape

    @lazy_property
    def logits(self) -> Any:
        """Return the log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Return the probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class Bernoulli(_Odds, ExponentialFamily):
    """1 with probability `probs`, else 0.

    Parameters
    ----------
    probs, logits : Tensor or number
        One of the two: the probability, or log(p / (1 - p)).

    Examples
    --------
    >>> import tensorplug as tp
    >>> Bernoulli(0.25).log_prob(tp.tensor([1.0, 0.0])).exp()
    tensor([0.2500, 0.7500])
    """

    _mean_carrier_measure = 0
    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (odds,) = self._set_odds(probs, logits)
        super().__init__(odds.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        likely = (self.probs >= 0.5).to(self.probs.dtype)
        return likely.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        # Of log odds, so that nothing is lost near 0 and 1.
        return value * self.logits - _softplus(self.logits)

    def entropy(self) -> Any:
        return _softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(2, *[1] * len(self._batch_shape))
        return values.expand(2, *self._batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return _softplus(x)


class Binomial(_Odds):
    """The number of successes among `total_count` independent trials."""

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        count, odds = self._set_odds(probs, logits, total_count)
        self.total_count = count.to(odds.dtype)
        super().__init__(odds.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * _softplus(self.logits)

    def entropy(self) -> Any:
        most = int(self.total_count.max())
        if not bool((self.total_count == most).all()):
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `entropy`: all of total_count must agree"
            )
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        most = int(self.total_count.max())
        if not bool((self.total_count == most).all()):
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`"
            )
        values = arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Geometric(_Odds):
    """The number of failures before the first success."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (odds,) = self._set_odds(probs, logits)
        super().__init__(odds.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution "
                f"Geometric to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        return full_like(self.probs, 0)

    @property
    def variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = uniform_numbers(shape, self.probs).clamp(min=finfo(self.probs.dtype).tiny)
            return (u.log() / (-self.probs.expand(shape)).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        never = (self.probs == 1) & (value == 0)
        probs = where(never, 0.0, self.probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        p = self.probs
        return -(xlogy(1 - p, 1 - p) + xlogy(p, p)) / p


class Poisson(ExponentialFamily):
    """The Poisson distribution of mean `rate`."""

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return x.exp()
