"""Distributions over a number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.device.dtypes import finfo, int64
from tensorplug.core.ops import arange, eye, full, multinomial, zeros_like

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, normalized, probs_to_logits

__all__ = ["Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class Categorical(Distribution):
    """The classes 0 to K - 1, with probabilities in the last dimension.

    Parameters
    ----------
    probs, logits : Tensor
        One of the two, ``(*batch, K)``: weights, not negative, or their logarithms. Both are normalised.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Categorical(tp.tensor([1.0, 3.0])).log_prob(tp.tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if given.ndim < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.__dict__["logits"] = normalized(logits)
        else:
            self.__dict__["probs"] = probs / probs.sum(-1, keepdim=True)
        self._num_events = int(given.shape[-1])
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._num_events = self._num_events
        return new

    @property
    def _param(self) -> Any:
        return self.probs if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._param.shape

    @lazy_property
    def logits(self) -> Any:
        """Return the log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Return the probabilities."""
        return logits_to_probs(self.logits)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    def _nan(self) -> Any:
        return full(
            tuple(self._batch_shape),
            float("nan"),
            dtype=self._param.dtype,
            device=self._param.device,
        )

    @property
    def mean(self) -> Any:
        return self._nan()

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Any:
        return self._nan()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        count = 1
        for size in sample_shape:
            count *= size
        with no_grad():
            rows = self.probs.detach().reshape(-1, self._num_events)
            if not count or not rows.shape[0]:
                return full(tuple(shape), 0, dtype=int64, device=rows.device)
            return multinomial(rows, count, True).T.reshape(shape)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        index = value.to(int64).unsqueeze(-1)
        shape = (index + zeros_like(self.logits[..., :1], dtype=int64)).shape[:-1]
        logs = self.logits.expand((*shape, self._num_events))
        return logs.gather(-1, index.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Any:
        logs = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logs * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(self._num_events, device=self._param.device)
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """The rows of an identity matrix, drawn as :class:`Categorical` draws their numbers."""

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=False)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _check_parameters(self) -> None:
        self._categorical._check_parameters()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

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
        return self.probs

    @property
    def mode(self) -> Any:
        return self._rows(self.probs.argmax(-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _rows(self, index: Any) -> Any:
        unit = eye(self._event_shape[0], dtype=self.probs.dtype, device=self.probs.device)
        return unit[index]

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._rows(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self._event_shape[0]
        values = self._rows(arange(n, device=self.probs.device))
        values = values.reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A :class:`OneHotCategorical` whose samples pass their gradient on to the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Return samples that differentiate as the probabilities do (Bengio et al. 2013)."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
