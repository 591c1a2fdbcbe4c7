"""Ops on elements at positions of a tensor taken as flat."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import int64
from ...dispatch import op_registry
from ...dispatch.op_registry import composite, in_place
from ...dispatch.out_dtypes import exact_out
from ...dispatch.writes import inplace
from ..rules import check_tensor
from ..shape.shape import reshape, reshaped, shown_as
from .indexing import index as index_op, index_put

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["put", "take"]

_INDEX_PUT = op_registry.handle("index_put")


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
    if index._key.dtype is not int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.name}")
    return index_op(reshaped(input, (math.prod(input._shape),)), [index])


def _put_values(input: Any, index: Any, source: Any) -> Any:
    check_tensor(input, "put")
    check_tensor(index, "put", "index")
    check_tensor(source, "put", "source")
    if index._key.dtype is not int64:
        raise RuntimeError(f"put(): Expected a long tensor for index, but got {index.dtype.name}")
    if source._key.dtype is not input._key.dtype:
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
        inplace(_INDEX_PUT, "put_", flat, ([index], values, accumulate), {})
        return input
    return NotImplemented


exact_out(take)
