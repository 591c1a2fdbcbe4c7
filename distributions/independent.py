"""Batch dimensions taken as dimensions of one value."""

from __future__ import annotations

from collections.abc import Sequence
from types import GenericAlias
from typing import Any, ClassVar

from tensorplug.core.tensor.shapes import Size

from . import constraints
from .distribution import Distribution

__all__ = ["Independent"]


def sum_rightmost(value: Any, count: int) -> Any:
    """Return the sum over the last dimensions."""
    return value.flatten(value.ndim - count).sum(-1) if count else value


class Independent(Distribution):
    """A distribution some of whose last batch dimensions belong to the event.

    Parameters
    ----------
    base_distribution : Distribution
    reinterpreted_batch_ndims : int
        How many.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.distributions import Normal
    >>> Independent(Normal(tp.zeros(3), tp.ones(3)), 1).event_shape
    Size([3])
    """

    arg_constraints: ClassVar[Any] = {}
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        count = reinterpreted_batch_ndims
        batch = base_distribution.batch_shape
        if count > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{count} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count
        split = len(batch) - count
        event = (*batch[split:], *base_distribution.event_shape)
        super().__init__(batch[:split], event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        kept = self.base_dist.batch_shape[len(self._batch_shape) :]
        base = self.base_dist.expand((*batch_shape, *kept))
        new = self._get_checked_instance(Independent, _instance)
        new.base_dist = base
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(new, Size(batch_shape), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property()
    def support(self) -> Any:
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.support
        return constraints.independent(base, count) if count else base

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
