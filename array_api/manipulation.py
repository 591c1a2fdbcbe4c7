"""Functions that arrange elements anew: shape, order, repetition, joining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import int64
from tensorplug.core.tensor import shapes

from .array import Array, wrap
from .promotion import align

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take",
    "take_along_axis", "tile", "unstack",
]  # fmt: skip

Axes: TypeAlias = int | tuple[int, ...]


def broadcast_arrays(*arrays: Tensor) -> list[Array]:
    """Return the arrays expanded to their common shape."""
    return [wrap(x) for x in ops.broadcast_tensors(*arrays)]


def broadcast_shapes(*shapes_: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Raises
    ------
    ValueError
        If they don't.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return tuple(shapes.broadcast_shapes(*shapes_))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Array:
    """Return `x` expanded to a shape."""
    return wrap(ops.broadcast_to(x, shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Array:
    """Return arrays joined along an axis; flattened before if it is None."""
    found = align(*arrays)
    if axis is None:
        return wrap(ops.cat([ops.flatten(x) for x in found]))
    return wrap(ops.cat(found, axis))


def expand_dims(x: Tensor, /, axis: Axes) -> Array:
    """Return `x` with axes of size 1 at the positions of `axis` in the result."""
    axes = (axis,) if isinstance(axis, int) else axis
    ndim = x.ndim + len(axes)
    places = sorted([shapes.normalize_dim(one, ndim, "expand_dims") for one in axes])
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims(): an axis appears twice in {axes}")
    result: Any = x
    for place in places:
        result = ops.unsqueeze(result, place)
    return wrap(result)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Array:
    """Return `x` with the order of elements along axes, by default all, reversed."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return wrap(ops.flip(x, tuple(axes)))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Array:
    """Return `x` with axes moved to other positions."""
    return wrap(ops.movedim(x, source, destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Array:
    """Return `x` with its axes in another order."""
    return wrap(ops.permute(x, tuple(axes)))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Array:
    """Return `x`, flattened if `axis` is None, with each element repeated so many times."""
    source: Any = x if axis is not None else ops.flatten(x)
    if isinstance(repeats, Tensor):
        repeats = repeats.to(int64)
    return wrap(ops.repeat_interleave(source, repeats, 0 if axis is None else axis))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Return `x` in another shape.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed.
    """
    if copy is False:
        try:
            return wrap(x.view(tuple(shape)))
        except RuntimeError as error:
            raise ValueError(f"reshape(): {error}") from None
    source: Any = ops.clone(x) if copy else x
    return wrap(ops.reshape(source, tuple(shape)))


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Array:
    """Return `x` with elements moved along axes, those beyond the last coming in first.

    Without `axis` the elements move as if in one dimension.
    """
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return wrap(ops.roll(x, shift, axis))


def squeeze(x: Tensor, /, axis: Axes) -> Array:
    """Return `x` without axes of size 1.

    Raises
    ------
    ValueError
        If the size of one of the axes is not 1.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze(): axis {one} has size {x.shape[one]}, expected 1")
    return wrap(ops.squeeze(x, axes)) if axes else wrap(x)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Array:
    """Return arrays of one shape joined along a new axis."""
    return wrap(ops.stack(align(*arrays), axis))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Array:
    """Return the elements at positions along an axis, which a vector may leave out.

    Raises
    ------
    ValueError
        If `x` is no vector and `axis` is None.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): axis is required for an array of {x.ndim} dimensions")
        axis = 0
    place = shapes.normalize_dim(axis, x.ndim, "take")
    key = (*[slice(None)] * place, indices.to(int64))
    return wrap(x[key])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Array:
    """Return the elements at positions along an axis that differ from place to place.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> x = xp.asarray([[3, 1, 2], [6, 4, 5]])
    >>> xp.take_along_axis(x, xp.argsort(x))
    Array([[1, 2, 3],
            [4, 5, 6]])
    """
    places: Any = indices.to(int64)
    size = x.shape[axis]
    return wrap(ops.take_along_dim(x, ops.where(places < 0, places + size, places), axis))


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Array:
    """Return copies of `x` side by side, so many along each axis."""
    return wrap(ops.tile(x, tuple(repetitions)))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the arrays that lie along an axis of `x`."""
    return tuple([wrap(part) for part in ops.unbind(x, axis)])
