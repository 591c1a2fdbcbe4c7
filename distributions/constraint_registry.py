"""Transforms from numbers without bounds to the values of a constraint, by the constraint's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Finds the transform whose values satisfy a constraint.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(tp.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Have a function of a constraint make the transform for all of a type, or serve as its decorator.

        Raises
        ------
        TypeError
            If `constraint` is neither a constraint nor a class of them.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {kind}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform for a constraint.

        Raises
        ------
        NotImplementedError
            If none is registered for its type.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


#: Transforms that have an inverse and a Jacobian, for densities of unbounded numbers.
biject_to = ConstraintRegistry()
#: Transforms for optimization, which may map many numbers to one.
transform_to = ConstraintRegistry()


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    scaled = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scaled])


def _beyond(bound: Any, direction: int) -> Any:
    shifted = transforms.AffineTransform(bound, direction)
    return transforms.ComposeTransform([transforms.ExpTransform(), shifted])


def _both(constraint: Any, factory: Any) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _of_parts(registry: ConstraintRegistry) -> None:
    """Register what asks the registry itself for the transforms of its parts."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    registry.register(
        constraints.cat,
        lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths),
    )
    registry.register(
        constraints.stack,
        lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim),
    )


_both(constraints.real, lambda _: transforms.identity_transform)
_both(constraints.greater_than, lambda c: _beyond(c.lower_bound, 1))
_both(constraints.greater_than_eq, lambda c: _beyond(c.lower_bound, 1))
_both(constraints.less_than, lambda c: _beyond(c.upper_bound, -1))
_both(constraints.interval, _between)
_both(constraints.half_open_interval, _between)
_both(constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(
    constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform()
)
transform_to.register(
    constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform()
)
_of_parts(biject_to)
_of_parts(transform_to)
