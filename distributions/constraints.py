"""Sets that parameters and values have to lie in.

The interface is that of ``torch.distributions.constraints``: each constraint has ``check(value)``, which
returns a bool tensor without the last ``event_dim`` dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core.device.dtypes import bool_
from tensorplug.core.ops import cat as cat_, split, stack as stack_
from tensorplug.core.ops.linalg.factors import linalg_cholesky_ex
from tensorplug.core.ops.linalg.spectra import linalg_eigvalsh

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values.

    Attributes
    ----------
    is_discrete : bool
        Whether its values stand apart.
    event_dim : int
        How many of the last dimensions make one value.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Return a bool tensor that says which values are in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A set that depends on other parameters, and can't be checked by itself."""

    def __init__(self, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """Whether its values stand apart; NotImplementedError where that depends on parameters."""
        return self._static("is_discrete")

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions make one value; NotImplementedError as above."""
        return self._static("event_dim")

    def _static(self, name: str) -> Any:
        value = self.__dict__[f"_{name}"]
        if value is None:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(
        self, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> _Dependent:
        """Return one that says how its values look."""
        return _Dependent(
            self._is_discrete if is_discrete is None else is_discrete,
            self._event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("a dependent constraint cannot be checked without its distribution")


class _DependentProperty(property, _Dependent):
    """A property that is a constraint, and on the class says only how values look."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete, event_dim)

    def __call__(  # type: ignore[override]
        self, fn: Callable[[Any], Any]
    ) -> _DependentProperty:
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """A constraint whose values have further dimensions, in all of which it has to hold."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.ndim < count:
            raise ValueError(
                f"expected a value of at least {self.event_dim} dimensions, got {value.ndim}"
            )
        return result.flatten(result.ndim - count).all(-1) if count else result

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    """Values that are 0 or 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with one 1, and 0 elsewhere."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Real(Constraint):
    """All numbers but NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _Simplex(Constraint):
    """Vectors of numbers that are not negative and add up to 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Above(Constraint):
    """What has one lower bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}lower_bound={self.lower_bound})"


class _Below(Constraint):
    """What has one upper bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}upper_bound={self.upper_bound})"


class _GreaterThan(_Above):
    """Values above a bound."""

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """Values not below a bound."""

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Values below a bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _IntegerGreaterThan(_Above):
    """Whole numbers not below a bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Between(Constraint):
    """What has two bounds."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def __repr__(self) -> str:
        bounds = f"lower_bound={self.lower_bound}, upper_bound={self.upper_bound}"
        return f"{super().__repr__()[:-1]}{bounds})"


class _Interval(_Between):
    """Values between two bounds, which belong to it."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Values from a bound up to another, which does not belong to it."""

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers between two bounds, which belong to it."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        inside = (value >= self.lower_bound) & (value <= self.upper_bound)
        return (value % 1 == 0) & inside


class _Multinomial(_Below):
    """Vectors of whole numbers, none below 0, that add up to a bound."""

    is_discrete = True
    event_dim = 1

    def check(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  torch's name
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def check(self, value: Any) -> Any:
        rows = ((value * value).sum(-1) - 1).abs().le(1e-4).all(-1)
        return super().check(value) & rows


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return value.new_full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype=bool_)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Any) -> Any:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        near = (value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()
        return near.all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return symmetric & (linalg_eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not bool(symmetric.all()):
            return symmetric
        return symmetric & (linalg_cholesky_ex(value)[1] == 0)


class _Sequence(Constraint):
    """Constraints of the parts of a tensor along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)


class _Cat(_Sequence):
    """Constraints of neighbouring slices of given lengths, as ``cat`` puts them together."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Any) -> Any:
        parts = split(value, self.lengths, self.dim)
        return cat_([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Sequence):
    """Constraints of slices of length 1, as ``stack`` puts them together."""

    @property
    def event_dim(self) -> int:
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        return stack_([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """What all components of a mixture can be, checked for each of them."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        return int(self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = value.dim() - self.event_dim
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


# Singletons, and classes that take bounds, under their public names.
dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
