"""Ops on elements at flat positions, and on those that a mask chooses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import operators
from ..dtypes import bool_, int64
from ..operators import composite, in_place
from ..shapes import broadcast_shapes
from ..writing import inplace
from .expansion import expand
from .indexing import at, index as index_op, index_put, part
from .rules import check_tensor
from .shape import reshape, reshaped, shown_as

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["masked_scatter", "masked_select", "put", "take"]

_INDEX_PUT = operators.handle("index_put")
_NONZERO = operators.handle("nonzero")


@composite()
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of `input`, taken as flat, at positions; the result has the index's shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.take(tp.tensor([[1, 2], [3, 4]]), tp.tensor([0, -1]))
    tensor([1, 4])
    """
    check_tensor(input, "take")
    check_tensor(index, "take", "index")
    if index._kind.dtype is not int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.name}")
    return index_op(reshaped(input, (math.prod(input._shape),)), [index])


def _put_values(input: Any, index: Any, source: Any) -> Any:
    check_tensor(input, "put")
    check_tensor(index, "put", "index")
    check_tensor(source, "put", "source")
    if index._kind.dtype is not int64:
        raise RuntimeError(f"put(): Expected a long tensor for index, but got {index.dtype.name}")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "put(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.name} and source.dtype = {source.dtype.name}"
        )
    if math.prod(index._shape) != math.prod(source._shape):
        raise IndexError(
            "put(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {math.prod(source._shape)}, index.numel() = {math.prod(index._shape)}"
        )
    return reshape(source, index._shape)


@composite(inplace=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with values written, or added, to positions of it taken as flat.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 2).put(tp.tensor([0, 3]), tp.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    values = _put_values(input, index, source)
    flat = reshape(input, (math.prod(input._shape),))
    return reshape(index_put(flat, [index], values, accumulate), input._shape)


@in_place(put)
def _put_(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    values = _put_values(input, index, source)
    if input.is_contiguous():
        flat = shown_as(input, (math.prod(input._shape),))
        inplace(_INDEX_PUT, "index_put_", flat, ([index], values, accumulate), {})
        return input
    return input.copy_(put(input, index, source, accumulate))


def _mask(input: Any, mask: Any, name: str) -> None:
    check_tensor(input, name)
    check_tensor(mask, name, "mask")
    if mask._kind.dtype is not bool_:
        raise RuntimeError(f"{name}: expected BoolTensor for mask, got dtype {mask.dtype.name}")


@composite()
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` where a mask, broadcast with it, is True, in one dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a = tp.tensor([1, 2, 3])
    >>> tp.masked_select(a, a > 1)
    tensor([2, 3])
    """
    _mask(input, mask, "masked_select")
    if input._shape == mask._shape and input._shape and input._kind.device is mask._kind.device:
        return _chosen(input, mask)
    shape = broadcast_shapes(input._shape, mask._shape) or (1,)
    return index_op(expand(input, shape), [expand(mask, shape)])


@composite(method=False)
def _chosen(input: Tensor, mask: Tensor) -> Tensor:
    """Return :func:`masked_select` for a mask of the input's shape."""
    return index_op(input, [mask])


def _masked(input: Any, mask: Any, source: Any) -> tuple[list[Any], Any]:
    _mask(input, mask, "masked_scatter")
    check_tensor(source, "masked_scatter", "source")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype.name} "
            f"and {source.dtype.name}"
        )
    found = _NONZERO.call(expand(mask, input._shape))
    count = found._shape[0]
    if math.prod(source._shape) < count:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source ({math.prod(source._shape)}) < number of ones "
            f"in mask ({count})"
        )
    values = part(reshape(source, (math.prod(source._shape),)), 0, 0, count)
    return [at(found, 1, d) for d in range(found._shape[1])], values


@composite(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with the first elements of `source` written where a mask is True.

    Examples
    --------
    >>> import tensorplug as tp
    >>> mask = tp.tensor([True, False, True])
    >>> tp.zeros(3).masked_scatter(mask, tp.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    shape = broadcast_shapes(input._shape, mask._shape)
    wide = expand(input, shape)
    if not shape:
        flat = masked_scatter(shown_as(wide, (1,)), reshape(mask, 1), source)
        return reshape(flat, ())
    indices, values = _masked(wide, mask, source)
    return index_put(wide, indices, values)


@in_place(masked_scatter)
def _masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    target = input if input._shape else shown_as(input, (1,))
    indices, values = _masked(target, mask, source)
    inplace(_INDEX_PUT, "index_put_", target, (indices, values), {})
    return input
