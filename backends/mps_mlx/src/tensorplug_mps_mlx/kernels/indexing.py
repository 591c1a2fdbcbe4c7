"""Kernels that read and write at positions.

Positions out of bounds are not looked for, as on every GPU: that would evaluate the graph at each gather.
They are moved to the nearest element, so that no foreign memory is touched.
"""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import ArrayApiBackend, Shape

from .._mlx import mx
from ..dtypes import BOOL, COMPLEX, DTYPES, FLOAT32, HALVES, INTEGERS, REALS
from .creation import whole
from .halves import through_float32


def inside(index: Any, size: int) -> Any:
    """Return positions that exist, negative ones counted from the end."""
    return mx.clip(index, -size, size - 1)


def same(array: Any) -> Any:
    """Return another object over the same elements, which can be written to."""
    return mx.reshape(array, array.shape)


def _full_key(shape: Shape, indices: list[Any]) -> tuple[Any, ...]:
    return tuple(
        [slice(None) if item is None else inside(item, shape[d]) for d, item in enumerate(indices)]
    )


def _along(index: Any, dim: int) -> tuple[Any, ...]:
    """Return the key of the elements that `index` names along `dim`."""
    ndim = index.ndim
    return tuple(
        [
            index if d == dim else mx.arange(n).reshape([n if k == d else 1 for k in range(ndim)])
            for d, n in enumerate(index.shape)
        ]
    )


def _with_dims(input: Any, dim: int, index: Any) -> tuple[Any, Any]:
    """Return input and index with at least one dimension, positions that exist."""
    input = input if input.ndim else mx.reshape(input, (1,))
    index = index if index.ndim else mx.reshape(index, (1,))
    return input, inside(index, input.shape[dim])


def gather(input: Any, dim: int, index: Any) -> Any:
    """Return the elements that `index` names along a dimension."""
    if not index.size:
        return mx.zeros(index.shape, dtype=input.dtype)
    shape = index.shape
    input, index = _with_dims(input, dim, index)
    part = tuple([slice(None) if d == dim else slice(0, index.shape[d]) for d in range(input.ndim)])
    return mx.reshape(mx.take_along_axis(input[part], index, axis=dim), shape)


def index(input: Any, indices: list[Any]) -> Any:
    """Return the elements at positions."""
    if len(indices) == 1:
        if not input.size:
            shape = (*indices[0].shape, *input.shape[1:])
            return mx.zeros(shape, dtype=input.dtype)
        return mx.take(input, inside(indices[0], input.shape[0]), axis=0)
    return input[_full_key(input.shape, indices)]


def index_put(input: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
    """Return the array with values put at positions, or added there."""
    if not input.size:
        return input
    key = _full_key(input.shape, indices)
    if accumulate:
        return input.at[key].add(values)
    result = same(input)
    result[key] = values
    return result


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return the array with elements of `src` added at positions along a dimension."""
    return scatter_reduce(input, dim, index, src, "sum", True)


def scatter(input: Any, dim: int, index: Any, src: Any, reduce: str | None) -> Any:
    """Return the array with elements of `src` put at positions along a dimension."""
    if reduce is not None:
        return scatter_reduce(input, dim, index, src, reduce, True)
    if not index.size or not input.size:
        return input
    target, index = _with_dims(input, dim, index)
    result = same(target)
    result[_along(index, dim)] = _values(src, index)
    return mx.reshape(result, input.shape)


def _values(src: Any, index: Any) -> Any:
    """Return of `src` what is written: its first elements in each dimension."""
    if src.ndim != index.ndim:
        return mx.broadcast_to(src, index.shape)
    return src[tuple([slice(0, n) for n in index.shape])]


_WAYS = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "maximum", "amin": "minimum"}
_WAYS |= {"add": "add", "multiply": "multiply"}


def _neutral(array: Any, reduce: str) -> Any:
    """Return the number that changes nothing in a reduction."""
    if reduce in ("sum", "mean", "add"):
        return 0
    if reduce in ("prod", "multiply"):
        return 1
    highest = reduce == "amin"
    if array.dtype in (mx.float32, mx.float16, mx.bfloat16):
        return float("inf") if highest else -float("inf")
    limits = mx.iinfo(array.dtype)
    return whole(limits.max if highest else limits.min, array.dtype)


def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
) -> Any:
    """Return the array reduced with elements of `src` at positions along a dimension."""
    if not index.size or not input.size:
        return input
    target, index = _with_dims(input, dim, index)
    key = _along(index, dim)
    values = _values(src, index)
    result = same(target)
    if not include_self:
        result[key] = mx.broadcast_to(
            mx.array(_neutral(target, reduce)).astype(target.dtype), index.shape
        )
    result = getattr(result.at[key], _WAYS[reduce])(values)
    if reduce == "mean":
        start = mx.ones if include_self else mx.zeros
        count = start(target.shape, dtype=mx.int32).at[key].add(1)
        count = mx.maximum(count, 1).astype(target.dtype)
        if target.dtype in (mx.float32, mx.complex64):
            result = result / count
        else:
            result = (result - mx.remainder(result, count)) // count
    return mx.reshape(result, input.shape)


def build(plugin: ArrayApiBackend) -> None:
    """Add these kernels to the plugin."""
    for function in (gather, index, index_put, scatter):
        plugin.kernel(dtypes=DTYPES)(function)
    plugin.kernel(dtypes=(*INTEGERS, FLOAT32, COMPLEX))(scatter_add)
    plugin.kernel("scatter_add", dtypes=HALVES)(through_float32(scatter_add))
    plugin.kernel(dtypes=(*INTEGERS, FLOAT32))(scatter_reduce)
    plugin.kernel("scatter_reduce", dtypes=HALVES)(through_float32(scatter_reduce))
    for op, triangle in (("tril", mx.tril), ("triu", mx.triu)):
        plugin.kernel(op, dtypes=(*REALS, BOOL))(triangle)
