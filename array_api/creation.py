"""Functions that make arrays."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import DType, Number, default_complex, get_default_dtype, int64
from tensorplug.core.tensor import creation

from .array import Array, wrap
from .data_types import Placement

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Sizes = int | tuple[int, ...]


def _sizes(shape: Sizes) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: Placement = None,
) -> Array:
    """Return the numbers from `start`, by default 0, up to but without `stop`, so far apart.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.arange(3), xp.arange(5, 1).shape
    (Array([0, 1, 2]), Size([0]))
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all([isinstance(bound, int) for bound in (start, stop, step)])
        dtype = int64 if whole else get_default_dtype()
    if math.ceil((stop - start) / step) <= 0:  # torch raises where the standard has an empty array
        return empty((0,), dtype=dtype, device=device)
    return wrap(ops.arange(start, stop, step, dtype=dtype, device=device))


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | None = None,
    device: Placement = None,
    copy: bool | None = None,
) -> Array:
    """Return `obj` as an array: numbers, nested sequences, tensors, anything with a buffer or DLPack.

    Unlike ``tp.asarray``, it leaves a tensor in its graph.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.asarray([1, 2], dtype=xp.float64)
    Array([1., 2.], dtype=tensorplug.float64)
    """
    if isinstance(obj, Tensor):
        result = obj.to(device=device, dtype=dtype)
        if copy is False and result is not obj:
            raise ValueError(
                f"asarray(): an array of {obj.dtype} on {obj.device} cannot become one of "
                f"{result.dtype} on {result.device} without a copy"
            )
        return wrap(result.clone() if copy and result is obj else result)
    return wrap(creation.asarray(obj, dtype=dtype, device=device, copy=copy))


def empty(shape: Sizes, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array whose elements may hold anything."""
    return wrap(ops.empty(_sizes(shape), dtype=dtype, device=device))


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array of the shape of `x` whose elements may hold anything."""
    return wrap(ops.empty_like(x, dtype=dtype, device=device))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Placement = None,
) -> Array:
    """Return a matrix with ones on its `k`-th diagonal and zeros elsewhere.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
            [0., 0., 1.]])
    """
    columns: Any = ops.arange(n_rows if n_cols is None else n_cols, device=device)
    rows: Any = ops.arange(n_rows, device=device)
    ones = columns == rows.unsqueeze(1) + k
    return wrap(ones.to(get_default_dtype() if dtype is None else dtype))


def from_dlpack(x: Any, /, *, device: Placement = None, copy: bool | None = None) -> Array:
    """Return an array over the memory of an object with ``__dlpack__``."""
    return wrap(creation.from_dlpack(x, device=device, copy=copy))


def full(
    shape: Sizes,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: Placement = None,
) -> Array:
    """Return an array that holds one number everywhere."""
    return wrap(ops.full(_sizes(shape), fill_value, dtype=dtype, device=device))


def full_like(
    x: Tensor,
    /,
    fill_value: Number,
    *,
    dtype: DType | None = None,
    device: Placement = None,
) -> Array:
    """Return an array of the shape of `x` that holds one number everywhere."""
    return wrap(ops.full_like(x, fill_value, dtype=dtype, device=device))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Placement = None,
    endpoint: bool = True,
) -> Array:
    """Return `num` numbers at equal distances from `start` to `stop`, with or without the latter.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    Array([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if dtype is None:
        has_complex = isinstance(start, complex) or isinstance(stop, complex)
        dtype = default_complex() if has_complex else get_default_dtype()
    if endpoint:
        return wrap(ops.linspace(start, stop, num, dtype=dtype, device=device))
    return wrap(ops.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1])


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid: each vector repeated along the dimensions of the others.

    With "xy" the first vector runs along the second dimension, with "ij" along the first.
    """
    return [wrap(x) for x in ops.meshgrid(*arrays, indexing=indexing)] if arrays else []


def ones(shape: Sizes, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array of ones."""
    return wrap(ops.ones(_sizes(shape), dtype=dtype, device=device))


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array of ones of the shape of `x`."""
    return wrap(ops.ones_like(x, dtype=dtype, device=device))


def tril(x: Tensor, /, *, k: int = 0) -> Array:
    """Return the matrices `x` with zeros above the `k`-th diagonal."""
    return wrap(ops.tril(x, k))


def triu(x: Tensor, /, *, k: int = 0) -> Array:
    """Return the matrices `x` with zeros below the `k`-th diagonal."""
    return wrap(ops.triu(x, k))


def zeros(shape: Sizes, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array of zeros."""
    return wrap(ops.zeros(_sizes(shape), dtype=dtype, device=device))


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Placement = None) -> Array:
    """Return an array of zeros of the shape of `x`."""
    return wrap(ops.zeros_like(x, dtype=dtype, device=device))
