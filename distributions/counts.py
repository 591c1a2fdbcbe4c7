"""Counts: negative binomial, multinomial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.ops import poisson, zeros_like

from . import constraints
from .categorical import Categorical
from .discrete import Binomial, _Odds, _softplus
from .distribution import Distribution
from .gamma_family import Gamma

__all__ = ["Multinomial", "NegativeBinomial"]


class NegativeBinomial(_Odds):
    """The number of successes before `total_count` failures; `total_count` need not be whole.

    Examples
    --------
    >>> NegativeBinomial(3.0, 0.5).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        count, odds = self._set_odds(probs, logits, total_count)
        self.total_count = count.to(odds.dtype)
        super().__init__(odds.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean * (1 + self.logits.exp())

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():  # a Poisson number whose rate is a gamma number
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        ways = ways.masked_fill(n + value == 0.0, 0.0)
        return ways - n * _softplus(self.logits) - value * _softplus(-self.logits)


class Multinomial(Distribution):
    """How often each class comes among `total_count` independent draws.

    Parameters
    ----------
    total_count : int
        The number of draws.
    probs, logits : Tensor
        One of the two, as for :class:`Categorical`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Multinomial(4, tp.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        if total_count < 0:
            raise ValueError(f"Multinomial: total_count must not be negative, got {total_count}")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The log probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        with no_grad():
            counts = zeros_like(self.probs.expand(self._extended_shape(sample_shape)))
            drawn = drawn.permute(*range(1, drawn.ndim), 0)
            ones = (drawn >= 0).to(counts.dtype)
            return counts.contiguous().scatter_add(-1, drawn, ones)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        logits = self.logits.masked_fill((value == 0) & (self.logits == -float("inf")), 0)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = self.total_count
        one = Binomial(n, self.probs, validate_args=False)
        values = one.enumerate_support(False)[1:]
        weights = one.log_prob(values).exp()
        ways = (values + 1).lgamma()
        return n * self._categorical.entropy() - math.lgamma(n + 1) + (weights * ways).sum([0, -1])
