"""Mixtures of distributions of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.ops import log_softmax, logsumexp

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of one of the distributions along the last dimension of a batch, chosen by a categorical one.

    Parameters
    ----------
    mixture_distribution : Categorical
        Chooses the component.
    component_distribution : Distribution
        Its last batch dimension holds the components.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.distributions import Categorical, Normal
    >>> two = Normal(tp.tensor([-1.0, 1.0]), tp.ones(2))
    >>> MixtureSameFamily(Categorical(tp.ones(2)), two).mean
    tensor(0.)
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixed), reversed(batch), strict=False):
            if 1 not in (one, other) and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        self._num_component = mixture_distribution.param_shape[-1]
        found = component_distribution.batch_shape[-1]
        if self._num_component != found:
            raise ValueError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({found})"
            )
        events = component_distribution.event_shape
        self._event_ndims = len(events)
        super().__init__(batch, events, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._to_be_filled(_instance)
        components = self._component_distribution.expand((*batch_shape, self._num_component))
        mixture = self._mixture_distribution.expand(batch_shape)
        MixtureSameFamily.__init__(new, mixture, components, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property()
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _weighted(self, values: Any) -> Any:
        """Return the mean over components of values, ``(*batch, components, *event)``."""
        weights = self._mixture_distribution.probs
        weights = weights.reshape((*weights.shape, *[1] * self._event_ndims))
        return (weights * values).sum(-1 - self._event_ndims)

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        parts = self._component_distribution
        apart = parts.mean - self._pad(self.mean)
        return self._weighted(parts.variance + apart**2)

    def cdf(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  torch's name
        below = self._component_distribution.cdf(self._pad(x))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  torch's name
        self._validate_sample(x)
        parts = self._component_distribution.log_prob(self._pad(x))
        return logsumexp(parts + log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            dim = chosen.ndim
            index = chosen.reshape((*chosen.shape, *[1] * (self._event_ndims + 1)))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        parts = (self._mixture_distribution, self._component_distribution)
        return f"MixtureSameFamily(\n  {parts[0]},\n  {parts[1]})"
