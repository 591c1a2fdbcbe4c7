"""Distributions of transformed values, and those that are simplest to say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import full_like, ones_like

from . import constraints
from .distribution import Distribution
from .gamma_family import Exponential
from .independent import Independent, sum_rightmost
from .location_scale import Normal, Uniform
from .transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)
from .utils import broadcast_all

__all__ = ["Gumbel", "LogNormal", "LogisticNormal", "TransformedDistribution", "Weibull"]

_EULER = 0.57721566490153286060


class TransformedDistribution(Distribution):
    """The distribution of the values of another one after transforms.

    Parameters
    ----------
    base_distribution : Distribution
    transforms : Transform or list of Transform
        Applied one after the other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.distributions import Normal
    >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(tp.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        chosen: Any = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(chosen, Sequence) or any([not isinstance(t, Transform) for t in chosen]):
            raise ValueError(
                f"transforms must be a Transform or a list of Transforms, but was {chosen}"
            )
        self.transforms = list(chosen)
        whole = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{whole.domain.event_dim}, but got {shape}."
            )
        out = tuple(whole.forward_shape(shape))
        base_shape = tuple(whole.inverse_shape(out))
        base_events = len(base_distribution.event_shape)
        if base_shape != shape:
            base_distribution = base_distribution.expand(
                base_shape[: len(base_shape) - base_events]
            )
        extra = whole.domain.event_dim - base_events
        self.base_dist = Independent(base_distribution, extra) if extra > 0 else base_distribution
        events = whole.codomain.event_dim + max(base_events - whole.domain.event_dim, 0)
        cut = len(out) - events
        super().__init__(out[:cut], out[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._to_be_filled(_instance)
        base = self.base_dist.expand(batch_shape)
        TransformedDistribution.__init__(new, base, self.transforms, validate_args=False)
        new._validate_args = self._validate_args
        return new

    # A plain True in the subclasses whose base always has.
    has_rsample: Any = property(lambda self: self.base_dist.has_rsample)

    def _codomain(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self._event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    support: Any = constraints.dependent_property(_codomain, is_discrete=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            value = self.base_dist.sample(sample_shape)
            for part in self.transforms:
                value = part(value)
            return value

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        value = self.base_dist.rsample(sample_shape)
        for part in self.transforms:
            value = part(value)
        return value

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        dims = len(self._event_shape)
        total: Any = 0.0
        y = value
        for part in reversed(self.transforms):
            x = part._inv_call(y)
            dims += part.domain.event_dim - part.codomain.event_dim
            total = total - sum_rightmost(
                part.log_abs_det_jacobian(x, y), dims - part.domain.event_dim
            )
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, dims - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        return sign

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        for part in reversed(self.transforms):
            value = part._inv_call(value)
        below = self.base_dist.cdf(value)
        return self._sign() * (below - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        value = self._sign() * (value - 0.5) + 0.5
        value = self.base_dist.icdf(value)
        for part in self.transforms:
            value = part(value)
        return value


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) of a normal x of mean `loc` and deviation `scale`."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    base_dist: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Any:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Probabilities that a stick is broken into by normal numbers of mean `loc` and deviation `scale`."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.simplex
    has_rsample = True
    base_dist: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Their standard deviations."""
        return self.base_dist.base_dist.scale


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of largest values, of mode `loc`."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        low = full_like(self.loc.detach(), info.tiny)
        base = Uniform(low, ones_like(low) - info.eps, validate_args=validate_args)
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -ones_like(low)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    # Directly: the base is a float's width short of (0, 1).
    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * (-value.log()).log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev**2

    def entropy(self) -> Any:
        return self.scale.log() + (1 + _EULER)


class Weibull(TransformedDistribution):
    """The Weibull distribution: scale * e ** (1 / concentration) of an exponential e."""

    arg_constraints: ClassVar[Any] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(self.concentration.reciprocal()),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return self.scale * (1 + 1 / self.concentration).lgamma().exp()

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        k = self.concentration
        second = (1 + 2 / k).lgamma().exp()
        return self.scale**2 * (second - (2 * (1 + 1 / k).lgamma()).exp())

    def entropy(self) -> Any:
        k = self.concentration
        return _EULER * (1 - 1 / k) + (self.scale / k).log() + 1
