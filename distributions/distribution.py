"""The base of all distributions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.tensor.predicates import is_tensor
from tensorplug.core.tensor.shapes import Size, broadcast_shapes

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]

_PACKAGE = __name__.rpartition(".")[0]


class Distribution:
    """A probability distribution over tensors, one for each place of a batch.

    Parameters
    ----------
    batch_shape : sequence of int
        The shape of the batch.
    event_shape : sequence of int
        The shape of one value.
    validate_args : bool, optional
        Whether parameters, and the values given to ``log_prob`` and its like, are checked; by default
        as :meth:`set_default_validate_args` says.

    Raises
    ------
    ValueError
        If a parameter lies outside of its constraint; the message names it.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    _validate_args = __debug__
    _stored: ClassVar[tuple[str, ...]] = ()  # attributes that `expand` expands, beside parameters

    def _no_support(self) -> Any:
        """The constraint that every value of the distribution satisfies."""  # noqa: D401
        raise NotImplementedError(f"{type(self)} does not define `support`")

    support: Any = property(_no_support)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether distributions check their arguments unless told otherwise."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args(): expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of what a subclass has as a base beside this one, such as a module

    def _check_parameters(self) -> None:
        if self.arg_constraints is Distribution.arg_constraints:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                UserWarning,
                stacklevel=4,
            )
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # computed from another parameter, which is checked
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {type(self).__name__} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return what the `expand` of a class fills: a subclass whose ``__init__`` differs needs its own."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def _to_be_filled(self, _instance: Any) -> Any:
        """Return what the `expand` of one of this package's classes fills.

        What somebody's subclass with another ``__init__`` keeps beside parameters is unknown.
        """
        kinds = type(self).__mro__
        ours = next(kind for kind in kinds if kind.__module__.startswith(_PACKAGE))
        return self._get_checked_instance(ours, _instance)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Return the distribution with its parameters expanded to a larger batch."""
        new = self._to_be_filled(_instance)
        shape = Size(batch_shape)
        # A subclass may have parameters of its own, beside those by which its base computes.
        found = [vars(kind).get("arg_constraints") for kind in type(self).__mro__]
        parameters = {name for names in found if isinstance(names, dict) for name in names}
        for name in (*parameters, *self._stored):
            value = self.__dict__.get(name)
            if is_tensor(value):
                own = value.ndim - len(self._batch_shape)
                new.__dict__[name] = value.expand((*shape, *value.shape[value.ndim - own :]))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return values of shape ``sample_shape + batch_shape + event_shape``, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return values through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no reparametrised samples")

    def sample_n(self, n: int) -> Tensor:
        """Return `n` values; deprecated, as in torch: ``sample((n,))``."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead",
            UserWarning,
            stacklevel=2,
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of values up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the values up to which the probability is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError if `value` cannot be one of this distribution's."""
        if not self._validate_args:
            return
        if not is_tensor(value):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.ndim - len(self._event_shape)
        if tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        try:
            broadcast_shapes(value.shape, (*self._batch_shape, *self._event_shape))
        except RuntimeError as error:
            raise ValueError(
                "Value is not broadcastable with batch_shape+event_shape: "
                f"{tuple(value.shape)} vs {(*self._batch_shape, *self._event_shape)}."
            ) from error
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                UserWarning,
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                f"within the support ({support!r}) of the distribution {self!r}, but found invalid "
                f"values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        parts = [f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given.items()]
        return f"{type(self).__name__}({', '.join(parts)})"
