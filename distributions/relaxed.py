"""Continuous relaxations of discrete distributions (Maddison et al. 2017, Jang et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.ops import log_softmax, logsumexp
from tensorplug.core.tensor.creation import as_tensor

from . import constraints
from .categorical import Categorical
from .discrete import _Odds, _softplus
from .distribution import Distribution
from .location_scale import uniform_numbers
from .transformed import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = [
    "ExpRelaxedCategorical",
    "LogitRelaxedBernoulli",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]


class LogitRelaxedBernoulli(_Odds):
    """The log odds of a :class:`RelaxedBernoulli`: (logits + logistic noise) / temperature."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (odds,) = self._set_odds(probs, logits)
        self.temperature = broadcast_all(temperature, odds)[0]
        super().__init__(odds.shape, validate_args=validate_args)

    _stored = ("temperature",)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = clamp_probs(uniform_numbers(self._extended_shape(sample_shape), self._param))
        p = clamp_probs(self.probs)
        noise = u.log() - (-u).log1p()
        return (noise + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = self.logits - value * self.temperature
        return self.temperature.log() + z - 2 * _softplus(z)


class _Relaxed(TransformedDistribution):
    """A relaxed distribution, brought to where it lives by a transform."""

    _relaxed: ClassVar[Any]
    _transform: ClassVar[Any]
    has_rsample = True
    base_dist: Any

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._relaxed(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, self._transform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The log odds, or log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers of (0, 1) near 0 or 1, and the nearer the lower the temperature.

    Parameters
    ----------
    temperature : Tensor or number
        Positive.
    probs, logits : Tensor or number
        One of the two, as for :class:`Bernoulli`.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    _relaxed = LogitRelaxedBernoulli
    _transform = SigmoidTransform


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a :class:`RelaxedOneHotCategorical`: log_softmax((logits + Gumbel) / temperature)."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        self.temperature = as_tensor(temperature, dtype=self._categorical._param.dtype)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        new.temperature = self.temperature
        return new

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The log probabilities."""
        return self._categorical.logits

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = clamp_probs(uniform_numbers(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return log_softmax(scores, -1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self._event_shape[0]
        z = self.logits - value * self.temperature
        z = z - logsumexp(z, -1, keepdim=True)
        scale = math.lgamma(k) + (k - 1) * self.temperature.log()
        return z.sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Probabilities near the corners of the simplex, and the nearer the lower the temperature."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    _relaxed = ExpRelaxedCategorical
    _transform = ExpTransform
