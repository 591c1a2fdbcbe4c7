"""Joining tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import DType, promote_types
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import cast_error
from ...errors import type_name
from ...tensor.base import TensorBase
from ...tensor.shapes import Shape, normalize_dim
from ..rules import cast, check_tensor
from ..shape.shape import atleast_1d, atleast_2d, atleast_3d, reshape, reshaped

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "row_stack",
    "stack",
    "vstack",
]

_EMPTY = (0,)


def _sequence(tensors: Any, name: str) -> list[Any]:
    """Return a nonempty list of tensors of one dtype, the one they promote to."""
    if isinstance(tensors, TensorBase):
        raise TypeError(f"{name}(): argument 'tensors' must be tuple of Tensors, not Tensor")
    found = list(tensors)
    if found and isinstance(found[0], TensorBase):
        key = found[0]._key
        for tensor in found:
            if not isinstance(tensor, TensorBase) or tensor._key is not key:
                break
        else:
            return found
    if not found:
        # torch's own choice of types
        error = ValueError if name == "cat" else RuntimeError
        joined = "cat(): expected a non-empty list of Tensors"
        raise error(joined if name == "cat" else f"{name} expects a non-empty TensorList")
    for position, tensor in enumerate(found):
        if not isinstance(tensor, TensorBase):
            raise TypeError(
                f"{name}(): expected Tensor as element {position} in argument 0, but got "
                f"{type_name(tensor)}"
            )
    dtype: DType = found[0]._key.dtype
    for tensor in found:
        dtype = promote_types(dtype, tensor._key.dtype)
    return [cast(tensor, dtype) for tensor in found]


@primitive("tensors, dim", method=False, aliases=("concat", "concatenate"))
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Spec:
    """Return tensors joined along a dimension that they have.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal shape but for `dim`; dtypes are promoted. One of shape (0,) beside others is left out.
    dim : int
        The dimension (``axis=`` is another name for it).

    Raises
    ------
    ValueError
        If there is none.
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cat([tp.tensor([1, 2]), tp.tensor([3])])
    tensor([1, 2, 3])
    """
    found = _sequence(tensors, "cat")
    shape: Shape = _EMPTY
    for position, tensor in enumerate(found):
        if not tensor._shape:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated; use stack()"
            )
        if shape == _EMPTY:
            shape = tensor._shape
    dim = dim if axis is None else axis
    # Where all are empty vectors, which go with any shape, so does the dimension.
    dim = 0 if shape == _EMPTY else normalize_dim(dim, len(shape), "cat")
    length = 0
    joined = []
    for position, tensor in enumerate(found):
        own = tensor._shape
        if own == shape:
            length += own[dim]
            joined.append(tensor)
            continue
        if own == _EMPTY:
            # Empty vectors went with any shape in torch's first versions, and still do.
            if tensor._state:  # in a shape that fits, for its gradient
                joined.append(reshaped(tensor, (*shape[:dim], 0, *shape[dim + 1 :])))
            continue
        if len(own) != len(shape):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(shape)} and {len(own)}"
            )
        if own[:dim] != shape[:dim] or own[dim + 1 :] != shape[dim + 1 :]:
            wrong = next(d for d in range(len(shape)) if d != dim and own[d] != shape[d])
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {shape[wrong]} but "
                f"got size {own[wrong]} for tensor number {position} in the list."
            )
        length += own[dim]
        joined.append(tensor)
    return Spec((joined, dim), (*shape[:dim], length, *shape[dim + 1 :]), found[0]._key.dtype)


concat = concatenate = cat


def _canonical_stack(tensors: Any, dim: int = 0) -> tuple[list[Any], int]:
    found = _sequence(tensors, "stack")
    shape = found[0]._shape
    for position, tensor in enumerate(found):
        if tensor._shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(tensor._shape)} at entry {position}"
            )
    return found, normalize_dim(dim, len(shape) + 1, "stack")


@composite(rule=_canonical_stack, method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors of one shape joined along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal shape; dtypes are promoted.
    dim : int
        Where the new dimension stands in the result.

    Raises
    ------
    RuntimeError
        If there is none, or the shapes differ.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.stack([tp.tensor([1, 2]), tp.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


def _listed(tensors: Any, name: str) -> list[Any]:
    if isinstance(tensors, TensorBase):
        raise TypeError(f"{name}(): argument 'tensors' must be tuple of Tensors, not Tensor")
    found = list(tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for tensor in found:
        check_tensor(tensor, name, "tensors")
    return found


@composite(method=False)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their second dimension, vectors along their only one.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hstack([tp.tensor([[1], [2]]), tp.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    found = [atleast_1d(tensor) for tensor in _listed(tensors, "hstack")]
    return cat(found, 0 if len(found[0]._shape) == 1 else 1)


@composite(method=False, aliases=("row_stack",))
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their first dimension; vectors are rows.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.vstack([tp.tensor([1, 2]), tp.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([atleast_2d(tensor) for tensor in _listed(tensors, "vstack")], 0)


row_stack = vstack


@composite(method=False)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their third dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.dstack([tp.tensor([1, 2]), tp.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([atleast_3d(tensor) for tensor in _listed(tensors, "dstack")], 2)


@composite(method=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their second dimension; vectors and numbers are columns.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.column_stack([tp.tensor([1, 2]), tp.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    columns = [
        tensor if len(tensor._shape) > 1 else reshape(tensor, (tensor.numel(), 1))
        for tensor in _listed(tensors, "column_stack")
    ]
    return cat(columns, 1)


cast_error(cat, stack, hstack, vstack, dstack, column_stack, error=TypeError)
