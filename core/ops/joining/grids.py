"""Grids, products and combinations of the elements of several tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import int64, result_dtype
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import composite
from ...errors import warn
from ...tensor.base import new_tensor
from ...tensor.host_data import from_data
from ...tensor.shapes import Shape
from ..copying import clone
from ..creation.creation import fill_new, options
from ..indexing.index_select import index_select
from ..indexing.indexing import place
from ..rules import cast, check_tensor
from ..shape.expansion import expand
from ..shape.shape import reshape, shown_as
from .joining import cat, stack

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["block_diag", "cartesian_prod", "combinations", "meshgrid"]


def _listed(tensors: tuple[Any, ...]) -> list[Any]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


@composite(method=False, outputs="*", view=True)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each vector expanded along the dimensions of the others.

    Parameters
    ----------
    *tensors : Tensor
        Vectors or numbers of one dtype.
    indexing : {"ij", "xy"}
        Whether the first vector runs along the first dimension ("ij", the default) or the second.

    Examples
    --------
    >>> import tensorplug as tp
    >>> rows, columns = tp.meshgrid(tp.tensor([1, 2]), tp.tensor([3, 4]), indexing="ij")
    >>> rows
    tensor([[1, 1],
            [2, 2]])
    """
    found = _listed(tensors)
    if not found:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in found:
        check_tensor(tensor, "meshgrid", "tensors")
        if len(tensor._shape) > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape "
                f"{list(tensor._shape)}"
            )
        if tensor._key.dtype is not found[0]._key.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor._key.device is not found[0]._key.device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    if indexing is None:
        warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument; pass "
            'indexing="ij" for what it is now',
            UserWarning,
        )
    swap = indexing == "xy" and len(found) > 1
    if swap:
        found[0], found[1] = found[1], found[0]
    shape = tuple([math.prod(tensor._shape) for tensor in found])
    grids = []
    for d, tensor in enumerate(found):
        own = tuple([size if d == n else 1 for n, size in enumerate(shape)])
        grids.append(expand(shown_as(tensor, own), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@composite(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return all combinations of one element from each vector, as rows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cartesian_prod(tp.tensor([1, 2]), tp.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    found = _listed(tensors)
    for tensor in found:
        check_tensor(tensor, "cartesian_prod", "tensors")
        if len(tensor._shape) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._shape)}")
    if len(found) == 1:
        return found[0]
    return stack([reshape(grid, -1) for grid in meshgrid(found, indexing="ij")], 1)


@composite()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` elements of a vector, as rows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.combinations(tp.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    check_tensor(input, "combinations")
    if len(input._shape) != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return fill_new((0,), 0, input.dtype, input.device)
    if r == 1:
        return reshape(clone(input), (input._shape[0], 1))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input._shape[0]), r))
    positions = _positions(list(itertools.chain.from_iterable(rows)), input)
    return reshape(index_select(input, 0, positions), (len(rows), r))


def _positions(values: list[int], like: Any) -> Any:
    """Return ints as an int64 tensor on the device of another."""
    key = dispatch_key(like._key.device, int64)
    array, _ = from_data(values, int64, "combinations")
    shape: Shape = (len(values),)
    return new_tensor(key.runtime.from_host(array, int64, key.device.index or 0), key, shape)


@composite(method=False)
def block_diag(*tensors: Any) -> Tensor:
    """Return a matrix with the given ones along its diagonal; vectors are rows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.block_diag(tp.tensor([[1, 2]]), tp.tensor([[3]]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    found = _listed(tensors)
    if not found:
        chosen, where = options(None, None)
        return fill_new((1, 0), 0, chosen, where)
    for tensor in found:
        check_tensor(tensor, "block_diag", "tensors")
    # Matrices weigh more than tensors without dimensions, as operands do.
    dtype = result_dtype(found)
    matrices: list[Any] = []
    for position, tensor in enumerate(found):
        shape = tensor._shape
        if len(shape) > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {len(shape)} dimensions"
            )
        wide = (1,) * (2 - len(shape)) + shape
        matrices.append(cast(tensor if shape == wide else shown_as(tensor, wide), dtype))
    return matrices_along_diagonal(matrices)


def _canonical_matrices(matrices: Any) -> tuple[list[Any]]:
    found = list(matrices)
    for matrix in found:
        check_tensor(matrix, "matrices_along_diagonal", "matrices")
    if not found or any([len(m._shape) != 2 or m.dtype is not found[0].dtype for m in found]):
        raise RuntimeError(
            "matrices_along_diagonal(): expected one matrix or more, all of one dtype, got "
            f"{[(list(matrix.shape), matrix.dtype.name) for matrix in found]}"
        )
    return (found,)


@composite(method=False, rule=_canonical_matrices)
def matrices_along_diagonal(matrices: Sequence[Tensor]) -> Tensor:
    """Return what :func:`block_diag` does, of one matrix or more, all of one dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.matrices_along_diagonal([tp.tensor([[1, 2]]), tp.tensor([[3]])])
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    columns = sum([matrix._shape[1] for matrix in matrices])
    rows = []
    start = 0
    for matrix in matrices:
        height, width = matrix._shape
        key = (slice(None), slice(start, start + width))
        rows.append(place(matrix, (height, columns), key))
        start += width
    return cat(rows, 0)
