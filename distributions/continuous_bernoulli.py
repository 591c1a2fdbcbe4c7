"""The continuous Bernoulli distribution (Loaiza-Ganem and Cunningham 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.ops import where, xlogy

from . import constraints
from .discrete import _Odds, _softplus
from .exp_family import ExponentialFamily
from .location_scale import uniform_numbers
from .utils import clamp_probs, lazy_property

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_Odds, ExponentialFamily):
    """Numbers of [0, 1] with a density proportional to ``probs ** x (1 - probs) ** (1 - x)``.

    Parameters
    ----------
    probs, logits : Tensor or number
        One of the two; `probs` lies in (0, 1), and is not the mean.
    lims : (float, float)
        Between these values of `probs` series about 1/2 are taken.

    Examples
    --------
    >>> import tensorplug as tp
    >>> ContinuousBernoulli(0.5).log_prob(tp.tensor(0.2))
    tensor(0.)
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (odds,) = self._set_odds(probs, logits)
        self._lims = lims
        super().__init__(odds.shape, validate_args=validate_args)
        if "probs" in self.__dict__:
            self.__dict__["probs"] = clamp_probs(self.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Any:
        """Return the parameter in (0, 1)."""
        return clamp_probs(self.logits.sigmoid())

    def _clear(self) -> tuple[Any, Any]:
        """Return where `probs` is away from 1/2, and `probs` moved away from it elsewhere."""
        low, high = self._lims
        clear = (self.probs <= low) | (self.probs > high)
        return clear, where(clear, self.probs, low)

    def _cont_bern_log_norm(self) -> Any:
        """Return the logarithm of the factor that makes the density's integral 1."""
        clear, p = self._clear()
        found = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        return where(clear, found, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Any:
        clear, p = self._clear()
        found = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return where(clear, found, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Any:
        clear, p = self._clear()
        found = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return where(clear, found, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(uniform_numbers(self._extended_shape(sample_shape), self._param))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return value * self.logits - _softplus(self.logits) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        clear, p = self._clear()
        inside = (xlogy(value, p) + xlogy(1 - value, 1 - p)).exp()
        found = where(clear, (inside + p - 1) / (2 * p - 1), value)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, found))

    def icdf(self, value: Any) -> Any:
        clear, p = self._clear()
        start = (-p).log1p()
        found = ((value * (2 * p - 1) - p).log1p() - start) / (p.log() - start)
        return where(clear, found, value)

    def entropy(self) -> Any:
        none, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (none - one) - self._cont_bern_log_norm() - none

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        low, high = (limit - 0.5 for limit in self._lims)
        clear = (x <= low) | (x > high)
        far = where(clear, x, low)
        series = 0.5 * x + x**2 / 24 - x**4 / 2880
        return where(clear, far.expm1().abs().log() - far.abs().log(), series)
