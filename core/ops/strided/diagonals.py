"""Diagonals, as views and put into matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out
from ...tensor.shapes import Shape, normalize_dim
from ..copying import clone
from ..creation.creation import fill_new
from ..rules import check_tensor
from .strided import write_view

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["diag", "diag_embed", "diagflat", "diagonal"]


@primitive("input, offset, dim1, dim2", view=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Spec:
    """Return a view of a diagonal, as the last dimension in place of two others.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    offset : int
        Which diagonal: 0 the main one, above 0 those above it, below 0 those below.
    dim1, dim2 : int
        Rows and columns.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagonal(tp.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    check_tensor(input, "diagonal")
    first, second, shape = diagonal_shape(input._shape, offset, dim1, dim2)
    return Spec((input, int(offset), first, second), shape, input.dtype)


def diagonal_shape(shape: Shape, offset: int, dim1: int, dim2: int) -> tuple[int, int, Shape]:
    """Return the canonical dimensions of a diagonal, and its shape."""
    first = normalize_dim(dim1, len(shape), "diagonal")
    second = normalize_dim(dim2, len(shape), "diagonal")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = shape[first], shape[second]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    rest = [size for d, size in enumerate(shape) if d not in (first, second)]
    return first, second, (*rest, length)


def _canonical_diag_embed(
    input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> tuple[Any, int, int, int]:
    check_tensor(input, "diag_embed")
    ndim = len(input._shape) + 1
    first = normalize_dim(dim1, ndim, "diag_embed")
    second = normalize_dim(dim2, ndim, "diag_embed")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, first, second


@composite(rule=_canonical_diag_embed)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return zeros with the last dimension of `input` laid along the diagonals of two new ones.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diag_embed(tp.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    side = input._shape[-1] + abs(offset)
    rest = iter(input._shape[:-1])
    ndim = len(input._shape) + 1
    shape = tuple([side if d in (dim1, dim2) else next(rest) for d in range(ndim)])
    result = fill_new(shape, 0, input.dtype, input.device)
    write_view(diagonal(result, offset, dim1, dim2), input)
    return result


@composite()
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a matrix with a vector on its diagonal, or the diagonal of a matrix as a new vector.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diag(tp.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    check_tensor(input, "diag")
    ndim = len(input._shape)
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return clone(_diagonal(input, diagonal))


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with all elements of `input` on a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagflat(tp.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    check_tensor(input, "diagflat")
    return diag_embed(input.reshape(math.prod(input._shape)), offset)


_diagonal = diagonal  # `diag` has an argument of that name


exact_out(diag)
