"""The array object: a Tensor whose Python operators and indexing follow the standard.

torch and the standard disagree in a few places, and a plain Tensor follows torch there: a 0-d tensor
counts less than others in promotion, a slice has no negative step, ``size`` is a method. A program
written for the standard gets arrays from its functions, so these return an :class:`Array`.
"""

from __future__ import annotations

from typing import Any, Self, cast

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import INTEGER, int64
from tensorplug.core.dispatch.overrides import disabled_torch_function_impl
from tensorplug.core.tensor.copies import of_class

from .promotion import align, promote

__all__ = ["Array", "wrap"]


def wrap(tensor: Any) -> Array:
    """Return a tensor as an Array over the same memory, in the same place of the graph."""
    if type(tensor) is Array or tensor is NotImplemented:
        return cast(Array, tensor)
    if tensor.requires_grad and tensor.is_leaf:
        tensor = tensor[...]  # a node between, so that the gradient reaches the leaf itself
    return cast(Array, of_class(tensor, Array))


class Count(int):
    """The number of elements; called, the sizes, since ``size`` is a method in torch."""

    _shape: Any

    def __call__(self, dim: int | None = None) -> Any:
        """Return the size of all dimensions, or of one."""
        return self._shape if dim is None else self._shape[dim]


def _binary(name: str) -> Any:
    """Return the operator of Tensor with the standard's promotion."""
    operator = getattr(Tensor, name)

    def method(self: Any, other: Any, /) -> Any:
        if isinstance(other, Tensor):
            self, other = align(self, other)
        return wrap(operator(self, other))

    method.__name__ = method.__qualname__ = name
    return method


def _unary(name: str) -> Any:
    operator = getattr(Tensor, name)

    def method(self: Any, /) -> Any:
        return wrap(operator(self))

    method.__name__ = method.__qualname__ = name
    return method


def _in_place(name: str) -> Any:
    """Return the in-place operator of Tensor, which keeps the dtype of the left operand."""
    operator = getattr(Tensor, name)

    def method(self: Any, other: Any, /) -> Any:
        if isinstance(other, Tensor) and promote(self.dtype, other.dtype) is self.dtype:
            other = other.to(self.dtype)
        return operator(self, other)

    method.__name__ = method.__qualname__ = name
    return method


class Array(Tensor):
    """A tensor that follows the array API standard where torch's rules differ from it.

    The functions of :mod:`tensorplug.array_api` return it. As a subclass of Tensor it has all methods of
    one; these follow torch, as ever, and return plain tensors.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> x = xp.asarray([1, 2, 3], dtype=xp.int8)
    >>> x[::-1] + xp.asarray(1, dtype=xp.int64)
    Array([4, 3, 2])
    >>> x.size
    3
    """

    __torch_function__: Any = staticmethod(disabled_torch_function_impl)

    __slots__ = ()

    # --- attributes ---

    @property
    def size(self) -> Count:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number of elements."""
        count = Count(self.numel())
        count._shape = self.shape
        return count

    @property
    def T(self) -> Array:
        """The transpose of a matrix."""
        return wrap(super().T)

    @property
    def mT(self) -> Array:
        """The transpose of each matrix of a stack."""
        return wrap(super().mT)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Return the array on another device."""
        return wrap(super().to_device(device, stream=stream))

    # --- operators ---

    __add__ = _binary("__add__")
    __radd__ = _binary("__radd__")
    __sub__ = _binary("__sub__")
    __rsub__ = _binary("__rsub__")
    __mul__ = _binary("__mul__")
    __rmul__ = _binary("__rmul__")
    __truediv__ = _binary("__truediv__")
    __rtruediv__ = _binary("__rtruediv__")
    __floordiv__ = _binary("__floordiv__")
    __rfloordiv__ = _binary("__rfloordiv__")
    __mod__ = _binary("__mod__")
    __rmod__ = _binary("__rmod__")
    __pow__ = _binary("__pow__")
    __rpow__ = _binary("__rpow__")
    __matmul__ = _binary("__matmul__")
    __and__ = _binary("__and__")
    __rand__ = _binary("__rand__")
    __or__ = _binary("__or__")
    __ror__ = _binary("__ror__")
    __xor__ = _binary("__xor__")
    __rxor__ = _binary("__rxor__")
    __lshift__ = _binary("__lshift__")
    __rlshift__ = _binary("__rlshift__")
    __rshift__ = _binary("__rshift__")
    __rrshift__ = _binary("__rrshift__")
    __lt__ = _binary("__lt__")
    __le__ = _binary("__le__")
    __gt__ = _binary("__gt__")
    __ge__ = _binary("__ge__")
    __eq__ = _binary("__eq__")
    __ne__ = _binary("__ne__")
    __hash__ = Tensor.__hash__
    __iadd__ = _in_place("__iadd__")
    __isub__ = _in_place("__isub__")
    __imul__ = _in_place("__imul__")
    __itruediv__ = _in_place("__itruediv__")
    __ifloordiv__ = _in_place("__ifloordiv__")
    __imod__ = _in_place("__imod__")
    __ipow__ = _in_place("__ipow__")
    __iand__ = _in_place("__iand__")
    __ior__ = _in_place("__ior__")
    __ixor__ = _in_place("__ixor__")
    __ilshift__ = _in_place("__ilshift__")
    __irshift__ = _in_place("__irshift__")
    __neg__ = _unary("__neg__")
    __pos__ = _unary("__pos__")
    __abs__ = _unary("__abs__")
    __invert__ = _unary("__invert__")

    # --- elements ---

    def __getitem__(self, key: Any) -> Array:
        items, backward = _split(self, key)
        source: Any = ops.flip(self, backward) if backward else self
        return wrap(Tensor.__getitem__(source, items))

    def __setitem__(self, key: Any, value: Any) -> None:
        items, backward = _split(self, key)
        if isinstance(value, Tensor) and value.dtype is not self.dtype:
            value = value.to(self.dtype)
        if not backward:
            Tensor.__setitem__(self, items, value)
            return
        # What runs backwards is no view: write to the places that the key reaches.
        places: Any = ops.arange(self.numel(), device=self.device).reshape(self.shape)
        places = Tensor.__getitem__(ops.flip(places, backward), items)
        if not isinstance(value, Tensor):
            value = ops.full((), value, dtype=self.dtype, device=self.device)
        self.put_(places, ops.broadcast_to(value, places.shape))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> Self:
        return cast(Self, wrap(super().__copy__()))


def _split(x: Tensor, key: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a key without negative steps, and the dimensions to turn round before it is used."""
    items = list(key) if isinstance(key, tuple) else [key]
    backward = []
    named = sum([_width(item) for item in items])
    dim = 0
    for place, item in enumerate(items):
        if item is Ellipsis:
            dim += x.ndim - named
            continue
        if isinstance(item, slice) and item.step is not None and item.step < 0 and dim < x.ndim:
            size = x.shape[dim]
            start, stop, step = item.indices(size)
            items[place] = slice(size - 1 - start, max(size - 1 - stop, 0), -step)
            backward.append(dim)
        elif isinstance(item, Tensor) and item.dtype.category == INTEGER:
            items[place] = item.to(int64)  # else uint8 would be taken for a mask
        elif isinstance(item, Tensor) and item.ndim and not item.numel():
            shape = x.shape[dim : dim + item.ndim]
            if all([n in (0, size) for n, size in zip(item.shape, shape, strict=False)]):
                items[place] = ops.zeros(shape, dtype=item.dtype, device=item.device)
        dim += _width(item)
    return (tuple(items) if isinstance(key, tuple) else items[0]), tuple(backward)


def _width(item: Any) -> int:
    """Return how many dimensions a part of a key speaks of."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype.category < INTEGER:
        return item.ndim
    return 1
