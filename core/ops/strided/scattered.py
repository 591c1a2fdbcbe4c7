"""Copies in which a view is written to."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast as typed

from ...dispatch import op_registry
from ...dispatch.execution import show
from ...dispatch.op_registry import Delegated, composite
from ...dispatch.out_dtypes import exact_out
from ...tensor.shapes import Shape, normalize_dim
from ..copying import clone
from ..indexing.indexing import at, select_position
from ..rules import cast, check_tensor
from .diagonals import diagonal, diagonal_shape
from .strided import as_strided, strided_shape, write_view

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"]

_BASIC_INDEX = op_registry.handle("basic_index")


def _check_source(src: Any, shape: Shape) -> None:
    if src._shape != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src._shape)}, slice size = {list(shape)}"
        )


def _source(input: Any, src: Any, shape: Shape, name: str) -> Any:
    """Return what is written to a view of a shape, of the dtype of `input` if it is on its device."""
    check_tensor(src, name, "src")
    _check_source(src, shape)
    return cast(src, input.dtype) if src._key.device is input._key.device else src


def _canonical_select_scatter(input: Any, src: Any, dim: int, index: int) -> tuple[Any, ...]:
    check_tensor(input, "select_scatter")
    dim, index = select_position(input._shape, dim, index)
    shape = (*input._shape[:dim], *input._shape[dim + 1 :])
    return input, _source(input, src, shape, "select_scatter"), dim, index


@composite(rule=_canonical_select_scatter)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` that holds `src` at one position along a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.select_scatter(tp.zeros(2, 2), tp.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    result = clone(input)
    write_view(at(result, dim, index), src)
    return result


def _canonical_slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> tuple[Any, ...]:
    check_tensor(input, "slice_scatter")
    shape = input._shape
    if not shape:
        raise IndexError("slice_scatter(): slice() cannot be applied to a 0-dim tensor.")
    dim = normalize_dim(dim, len(shape), "slice_scatter")
    if step <= 0:
        raise RuntimeError(f"slice_scatter(): step must be greater than zero, got {step}")
    start, end, step = slice(start, end, step).indices(shape[dim])
    held = (*shape[:dim], len(range(start, end, step)), *shape[dim + 1 :])
    return input, _source(input, src, held, "slice_scatter"), dim, start, end, step


@composite(rule=_canonical_slice_scatter)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return a copy of `input` that holds `src` at a slice of a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.slice_scatter(tp.zeros(4), tp.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    result = clone(input)
    key = (*((slice(None),) * dim), slice(start, end, step))
    write_view(show(_BASIC_INDEX, result, (key,), src._shape), src)
    return result


def _canonical_diagonal_scatter(
    input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> tuple[Any, ...]:
    check_tensor(input, "diagonal_scatter")
    first, second, shape = diagonal_shape(input._shape, offset, dim1, dim2)
    return input, _source(input, src, shape, "diagonal_scatter"), int(offset), first, second


@composite(rule=_canonical_diagonal_scatter)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return a copy of `input` that holds `src` along a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagonal_scatter(tp.zeros(2, 2), tp.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    result = clone(input)
    write_view(diagonal(result, offset, dim1, dim2), src)
    return result


def _canonical_as_strided_scatter(
    input: Any,
    src: Any,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:
    check_tensor(input, "as_strided_scatter")
    check_tensor(src, "as_strided_scatter", "src")
    shape, strides = strided_shape(size, stride)
    offset = 0 if storage_offset is None else int(storage_offset)
    if not input._key.runtime.is_contiguous(input._array) or _overlap(shape, strides):
        # The copy has another layout than gradients have, or which element is kept is not said.
        return Delegated(_written_by_strides(input, src, shape, strides, offset))
    return input, _source(input, src, shape, "as_strided_scatter"), shape, strides, offset


@functools.lru_cache(maxsize=1024)  # it takes as long as the kernel
def _overlap(shape: Shape, strides: Shape) -> bool:
    """Return whether elements of a view may share memory."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _written_by_strides(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], offset: int
) -> Any:
    result = clone(input)
    target = as_strided(result, size, stride, offset)
    _check_source(src, target._shape)
    write_view(target, src)
    return result


@composite(rule=_canonical_as_strided_scatter)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Return a copy of `input` that holds `src` at a view by strides.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.as_strided_scatter(tp.zeros(4), tp.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    return typed("Tensor", _written_by_strides(input, src, size, stride, storage_offset or 0))


as_strided_scatter.op.cacheable = False  # type: ignore[attr-defined]  # its rule reads strides


exact_out(slice_scatter)
