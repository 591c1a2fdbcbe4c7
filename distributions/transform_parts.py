"""Transforms of the parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core.ops import cat, split, stack

from . import constraints
from .independent import sum_rightmost
from .transform_base import Transform

__all__ = ["CatTransform", "StackTransform"]


class _Parts(Transform):
    """Transforms of slices along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _slices(self, x: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _joined(self, parts: list[Any], dim: int) -> Any:
        raise NotImplementedError

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._slices(x), strict=True)
        return self._joined([t(part) for t, part in pairs], self.dim)

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._slices(y), strict=True)
        return self._joined([t._inv_call(part) for t, part in pairs], self.dim)

    def _jacobians(self, x: Any, y: Any) -> list[Any]:
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return [t.log_abs_det_jacobian(one, other) for t, one, other in parts]

    def _same(self, other: Any) -> bool:
        return bool(self.transforms == other.transforms and self.dim == other.dim)


class CatTransform(_Parts):
    """Transforms of neighbouring slices of given lengths, as ``cat`` puts them together.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.distributions import ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(tp.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of the whole."""
        return sum(self.lengths)

    def _slices(self, x: Any) -> Sequence[Any]:
        if x.shape[self.dim] != self.length:
            raise AssertionError(
                f"x.size({self.dim}) = {x.shape[self.dim]} must equal length {self.length}"
            )
        return split(x, self.lengths, self.dim)

    def _joined(self, parts: list[Any], dim: int) -> Any:
        return cat(parts, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        events = self.event_dim
        found = [
            sum_rightmost(part, events - t.event_dim)
            for t, part in zip(self.transforms, self._jacobians(x, y), strict=True)
        ]
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + events
        return cat(found, dim) if dim < 0 else sum(found[1:], found[0])

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _same(self, other: Any) -> bool:
        return super()._same(other) and bool(self.lengths == other.lengths)


class StackTransform(_Parts):
    """Transforms of slices of length 1, as ``stack`` puts them together."""

    def _slices(self, x: Any) -> Sequence[Any]:
        if x.shape[self.dim] != len(self.transforms):
            raise AssertionError(
                f"x.size({self.dim}) = {x.shape[self.dim]} must equal len(transforms) "
                f"{len(self.transforms)}"
            )
        return x.unbind(self.dim)

    def _joined(self, parts: list[Any], dim: int) -> Any:
        return stack(parts, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return stack(self._jacobians(x, y), self.dim)

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
