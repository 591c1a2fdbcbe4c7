"""Functions of all elements, or of those along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import FLOATING, DType, int64, uint64
from tensorplug.core.tensor import shapes

from .array import Array, wrap
from .promotion import align

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip

Axis: TypeAlias = int | tuple[int, ...] | None


def _reduced(
    op: Callable[..., Any], x: Any, axis: Axis, keepdims: bool, merge: bool = False, **options: Any
) -> Array:
    """Return an op of the elements along axes; `merge` if the op takes one dimension at most.

    No axis at all, ``()``, leaves each element by itself; torch would take it for all of them.
    """
    ndim = x.ndim
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    dims = shapes.normalize_dims(
        tuple(axes), ndim, getattr(op, "__name__", "reduction"), empty_is_all=False
    )
    if not dims:
        return wrap(op(ops.unsqueeze(x, -1), -1, **options))
    if not merge or len(dims) == 1:
        return wrap(op(x, dims[0] if merge else dims, keepdim=keepdims, **options))
    kept = [dim for dim in range(ndim) if dim not in dims]
    shape = x.shape
    rows = ops.permute(x, (*kept, *dims)).reshape(
        *[shape[dim] for dim in kept], math.prod([shape[dim] for dim in dims])
    )
    result: Any = op(rows, -1, **options)
    if keepdims:
        result = result.reshape([1 if dim in dims else shape[dim] for dim in range(ndim)])
    return wrap(result)


def summed_dtype(x: Tensor, dtype: DType | None) -> DType:
    """Return the dtype of a sum or product: integers get the widest dtype of their sign."""
    if dtype is not None or x.dtype.category >= FLOATING:
        return x.dtype if dtype is None else dtype
    return uint64 if x.dtype.category == int64.category and not x.dtype.is_signed else int64


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether all elements are true; True if there are none."""
    return _reduced(ops.all, x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether any element is true; False if there are none."""
    return _reduced(ops.any, x != 0, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return how many elements are not 0."""
    return _reduced(ops.sum, x != 0, axis, keepdims)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the products of the elements up to each along an axis; a 1 first, if asked for."""
    return _cumulative(ops.cumprod, 1, x, axis, dtype, include_initial)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the sums of the elements up to each along an axis; a 0 first, if asked for.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    return _cumulative(ops.cumsum, 0, x, axis, dtype, include_initial)


def _cumulative(
    op: Callable[..., Any],
    initial: int,
    x: Any,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
) -> Array:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"axis is required for an array of {x.ndim} dimensions")
        x = ops.flatten(x)
        axis = 0
    result = op(x, axis, dtype=summed_dtype(x, dtype))
    if include_initial:
        shape = list(result.shape)
        shape[axis] = 1
        first = ops.full(shape, initial, dtype=result.dtype, device=result.device)
        result = ops.cat([first, result], axis)
    return wrap(result)


def diff(
    x: Tensor,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Array:
    """Return the `n`-th differences of neighbours along an axis.

    The standard has keywords alone after `x`; by position they stand as in NumPy and torch.
    """
    found = align(*[item for item in (x, prepend, append) if item is not None])
    first = found.pop(0)
    before = None if prepend is None else found.pop(0)
    after = None if append is None else found.pop(0)
    return wrap(ops.diff(first, n, axis, before, after))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the greatest element; NaN if one is NaN."""
    return _reduced(ops.amax, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the arithmetic mean."""
    return _reduced(ops.mean, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the least element; NaN if one is NaN."""
    return _reduced(ops.amin, x, axis, keepdims)


def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False
) -> Array:
    """Return the product; 1 if there are no elements."""
    return _reduced(ops.prod, x, axis, keepdims, merge=True, dtype=summed_dtype(x, dtype))


def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the standard deviation; `correction` is taken from the number of elements."""
    return _reduced(ops.std, x, axis, keepdims, correction=correction)


def sum(
    x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False
) -> Array:
    """Return the sum; 0 if there are no elements.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.sum(xp.ones((2, 3)), axis=1)
    Array([3., 3.])
    """
    return _reduced(ops.sum, x, axis, keepdims, dtype=summed_dtype(x, dtype))


def var(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the variance; `correction` is taken from the number of elements."""
    return _reduced(ops.var, x, axis, keepdims, correction=correction)
