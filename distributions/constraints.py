"""Sets that parameters and values have to lie in.

The interface is that of ``torch.distributions.constraints``: each constraint has ``check(value)``, which
returns a bool tensor without the last ``event_dim`` dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tensorplug.core.device.dtypes import bool_
from tensorplug.core.ops.linalg.factors import linalg_cholesky_ex
from tensorplug.core.ops.linalg.spectra import linalg_eigvalsh

__all__ = [
    "Constraint",
    "boolean",
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

    def __init__(self, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def check(self, value: Any) -> Any:
        raise ValueError("a dependent constraint cannot be checked without its distribution")


class dependent_property(property, _Dependent):
    """A property that is a constraint, and on the class says only how values look."""

    def __init__(
        self,
        fget: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        property.__init__(self, fget)
        _Dependent.__init__(self, is_discrete, event_dim)

    def __call__(self, fget: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fget, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


class independent(Constraint):
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
        return f"independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Where(Constraint):
    """Values for which a function of one tensor holds."""

    def __init__(
        self, name: str, holds: Callable[[Any], Any], discrete: bool = False, event_dim: int = 0
    ) -> None:
        self.name = name
        self.holds = holds
        self.is_discrete = discrete
        self.event_dim = event_dim

    def check(self, value: Any) -> Any:
        return self.holds(value)

    def __repr__(self) -> str:
        return self.name


class _Bounded(Constraint):
    """Values beside or between bounds."""

    template: ClassVar[str]

    def __init__(self, *bounds: Any) -> None:
        self.bounds = bounds
        for name, bound in zip(("lower_bound", "upper_bound"), bounds, strict=False):
            setattr(self, name, bound)

    def __repr__(self) -> str:
        return type(self).__name__ + self.template.format(*self.bounds)


class greater_than(_Bounded):
    """Values above a bound."""

    template = "(lower_bound={})"

    def check(self, value: Any) -> Any:
        return value > self.bounds[0]


class greater_than_eq(greater_than):
    """Values not below a bound."""

    def check(self, value: Any) -> Any:
        return value >= self.bounds[0]


class less_than(_Bounded):
    """Values below a bound."""

    template = "(upper_bound={})"

    def __init__(self, upper_bound: Any) -> None:
        self.bounds = (upper_bound,)
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class interval(_Bounded):
    """Values between two bounds, which belong to it."""

    template = "(lower_bound={}, upper_bound={})"

    def check(self, value: Any) -> Any:
        low, high = self.bounds
        return (value >= low) & (value <= high)


class half_open_interval(interval):
    """Values from a bound up to another, which does not belong to it."""

    def check(self, value: Any) -> Any:
        low, high = self.bounds
        return (value >= low) & (value < high)


class integer_interval(interval):
    """Whole numbers between two bounds, which belong to it."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class multinomial(_Bounded):
    """Vectors of whole numbers, none below 0, that add up to a bound."""

    is_discrete = True
    event_dim = 1
    template = "(upper_bound={})"

    def __init__(self, upper_bound: Any) -> None:
        self.bounds = (upper_bound,)
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _WholeFrom(_Bounded):
    is_discrete = True
    template = "(lower_bound={})"

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.bounds[0])


def _is_symmetric(value: Any) -> Any:
    near = (value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()
    return near.all(-1).all(-1)


def _is_triangular(value: Any) -> Any:
    return (value.tril() == value).all(-1).all(-1)


def _is_cholesky(value: Any) -> Any:
    return _is_triangular(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _has_unit_rows(value: Any) -> Any:
    return ((value * value).sum(-1) - 1).abs().le(1e-4).all(-1)


def _is_semidefinite(value: Any) -> Any:
    return _is_symmetric(value) & (linalg_eigvalsh(value) >= 0).all(-1)


def _is_definite(value: Any) -> Any:
    return _is_symmetric(value) & (linalg_cholesky_ex(value)[1] == 0)


dependent = _Dependent()
boolean = _Where("Boolean()", lambda v: (v == 0) | (v == 1), discrete=True)
one_hot = _Where(
    "OneHot()",
    lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1),
    discrete=True,
    event_dim=1,
)
nonnegative_integer = _WholeFrom(0)
positive_integer = _WholeFrom(1)
real = _Where("Real()", lambda v: v == v)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Where(
    "Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), event_dim=1
)
square = _Where(
    "Square()",
    lambda v: v.new_full(v.shape[:-2], v.shape[-1] == v.shape[-2], dtype=bool_),
    event_dim=2,
)
symmetric = _Where("Symmetric()", _is_symmetric, event_dim=2)
lower_triangular = _Where("LowerTriangular()", _is_triangular, event_dim=2)
lower_cholesky = _Where("LowerCholesky()", _is_cholesky, event_dim=2)
corr_cholesky = _Where("CorrCholesky()", lambda v: _is_cholesky(v) & _has_unit_rows(v), event_dim=2)
positive_semidefinite = _Where("PositiveSemidefinite()", _is_semidefinite, event_dim=2)
positive_definite = _Where("PositiveDefinite()", _is_definite, event_dim=2)
