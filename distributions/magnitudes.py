"""Distributions of the magnitude of a number that lies evenly about 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.ops import full_like, where
from tensorplug.core.tensor.creation import as_tensor

from . import constraints
from .location_scale import Cauchy, Normal
from .transformed import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy", "HalfNormal"]


class Magnitude(TransformedDistribution):
    """Base of both: the distribution of the number itself is `base_dist`."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    @property
    def scale(self) -> Any:
        """The scale of the number itself."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return full_like(self.scale, 0)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Magnitude):
    """The distribution of the magnitude of a normal number of mean 0 and deviation `scale`."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (1 - 2 / math.pi)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return inside.masked_fill(value < 0, -math.inf)


class HalfCauchy(Magnitude):
    """The distribution of the magnitude of a Cauchy number of median 0 and half width `scale`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> HalfCauchy(1.0).cdf(tp.tensor(1.0))
    tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return full_like(self.scale, math.inf)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return where(value >= 0, inside, -math.inf)
