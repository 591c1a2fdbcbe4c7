"""What transforms are, and those that are made of others."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import constraints
from .independent import sum_rightmost

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A map from one set of values to another.

    Subclasses say `domain`, `codomain`, `bijective` and `sign`, and supply ``_call``, ``_inverse`` and
    ``log_abs_det_jacobian(x, y)``.

    Parameters
    ----------
    cache_size : {0, 1}
        Whether the last pair (x, y) is kept, so that an inverse is exact.
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective: Any = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (
            None,
            None,
        )  # subclasses read it, so it has torch's name
        self._inv: Any = None
        super().__init__()  # of what a subclass has as a base beside this one, such as a module

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # a weak reference stays in its process

    if TYPE_CHECKING:
        sign: Any  # of most transforms an attribute
    else:

        @property
        def sign(self) -> Any:
            """Whether the transform rises (1) or falls (-1), if it does one of both everywhere."""
            raise NotImplementedError(f"{type(self).__name__} has no sign: it is not monotonic")

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions make one value, where that is the same before and after."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse, whose own inverse this is; the same as long as somebody holds it."""
        found: Transform | None = None if self._inv is None else self._inv()
        if found is None:
            found = self._inverted()
            self._inv = weakref.ref(found)
        return found

    def _inverted(self) -> Transform:
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another size of the cache."""
        if cache_size == self._cache_size:
            return self
        import copy

        made = copy.copy(self)
        Transform.__init__(made, cache_size)
        return made

    def __call__(self, x: Any) -> Any:
        """Return y."""
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return ``log |dy / dx|``, summed over one value's dimensions."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for one of x."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for one of y."""
        return shape

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._same(other)

    __hash__ = object.__hash__

    def _same(self, other: Any) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, base: Transform) -> None:
        super().__init__(base._cache_size)
        self._inv = base

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    @property
    def inv(self) -> Transform:
        found: Transform = self._inv
        return found

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another size of the cache, which the one that it inverts has."""
        return self.inv.with_cache(cache_size).inv

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def _same(self, other: Any) -> bool:
        return self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another size of the cache, which its parts have."""
        if cache_size == self._cache_size:
            return self
        return ComposeTransform(self.parts, cache_size)

    def _inverted(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inv = weakref.ref(self)
        return inverse

    @property
    def domain(self) -> Any:
        return self._widened(self.parts[0].domain if self.parts else constraints.real, True)

    @property
    def codomain(self) -> Any:
        return self._widened(self.parts[-1].codomain if self.parts else constraints.real, False)

    def _widened(self, constraint: Any, first: bool) -> Any:
        """Return a constraint with as many event dimensions as the widest part asks for."""
        wanted = constraint.event_dim
        shift = 0
        for part in self.parts if first else reversed(self.parts):
            near, far = part.domain.event_dim, part.codomain.event_dim
            if not first:
                near, far = far, near
            wanted = max(wanted, near + shift)
            shift += near - far
        extra = wanted - constraint.event_dim
        return constraints.independent(constraint, extra) if extra > 0 else constraint

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        dims = self.domain.event_dim
        total: Any = 0
        for part in self.parts:
            after = part(x)
            total = total + sum_rightmost(
                part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim
            )
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total if self.parts else y * 0

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _same(self, other: Any) -> bool:
        return bool(self.parts == other.parts)


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform some of whose batch dimensions belong to one value."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Any) -> Any:
        _check_ndim(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        _check_ndim(y, self.codomain)
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        base = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(base, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


def _check_ndim(value: Any, constraint: Any) -> None:
    if value.ndim < constraint.event_dim:
        raise ValueError(
            f"Too few dimensions on input: expected {constraint.event_dim} or more, got {value.ndim}"
        )


class ReshapeTransform(Transform):
    """Another shape of one value."""

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(tuple(x.shape)))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(tuple(y.shape)))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.out_shape, self.in_shape)


def _exchanged(shape: Any, old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != old:
        raise ValueError(f"Shape mismatch: expected {tuple(shape)} to end in {old}")
    return (*shape[:cut], *new)
