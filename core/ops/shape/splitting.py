"""Taking tensors apart, without copies."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...device.dtypes import int64, scalar_type
from ...dispatch.op_registry import composite
from ...dispatch.state import dispatch_state
from ...tensor.base import TensorBase
from ...tensor.shapes import as_shape, existing_dim, is_truth, normalize_dim
from ..indexing.indexing import at, part, part_of_shape, resized
from ..rules import check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "chunk",
    "dsplit",
    "hsplit",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
    "vsplit",
]


_MANY = 256


def _dimension(input: Any, dim: int, name: str) -> int:
    """Return the canonical dimension to split; a 0-d tensor has none."""
    check_tensor(input, name)
    if not input._shape:
        raise RuntimeError(
            f"{name} expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    return normalize_dim(dim, len(input._shape), name)


@composite(view=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the views of all positions along a dimension, which disappears.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.unbind(tp.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    check_tensor(input, "unbind")
    shape = input._shape
    dim = existing_dim(dim, len(shape), "unbind")
    many = _are_many(shape[dim])
    try:
        if many:
            gc.disable()
        return tuple([at(input, dim, position) for position in range(shape[dim])])
    finally:
        if many:
            gc.enable()


@composite(view=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of the given sizes along a dimension.

    Raises
    ------
    RuntimeError
        If the sizes do not sum to the dimension's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.split_with_sizes(tp.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    dim = _dimension(input, dim, "split_with_sizes")
    sizes = list(as_shape((tuple(split_sizes),), "split_with_sizes"))
    size = input._shape[dim]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
            f"dimension {dim}), and none to be negative, but got input tensor's split_sizes={sizes}"
        )
    return _parts(input, sizes, dim)


def _parts(input: Any, sizes: list[int], dim: int) -> tuple[Any, ...]:
    """Return the views of :func:`split_with_sizes` for canonical arguments."""
    parts = []
    start = 0
    common = -1
    shape = input._shape
    many = _are_many(len(sizes))
    try:
        if many:
            gc.disable()
        for length in sizes:
            if length != common:  # most have one length
                common, shape = length, resized(input._shape, dim, length)
            stop = start + length
            parts.append(part_of_shape(input, dim, start, stop, shape))
            start = stop
    finally:
        if many:
            gc.enable()
    return tuple(parts)


def _are_many(views: int) -> bool:
    """Return whether Python's collector of cycles would look through new views again and again."""
    return views >= _MANY and gc.isenabled()


def _cut(input: Any, sizes: list[int], dim: int) -> tuple[Any, ...]:
    """Return :func:`split_with_sizes` for canonical arguments: one node, where there is to be one."""
    if dispatch_state.layers_active or input._state:
        return split_with_sizes(input, sizes, dim)
    return _parts(input, sizes, dim)


def _equal_sizes(size: int, length: int) -> list[int]:
    """Return the sizes of parts of one length; the last part takes what is left."""
    whole, rest = divmod(size, length)
    return [length] * whole + ([rest] if rest else [])


@composite(view=True)
def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Return views of consecutive parts along a dimension.

    Parameters
    ----------
    tensor : Tensor
        Of at least one dimension.
    split_size_or_sections : int or sequence of int
        The size of each part (the last may be smaller), or the sizes of all of them.
    dim : int
        The dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.split(tp.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(split_size_or_sections, int) and not isinstance(
        split_size_or_sections, TensorBase
    ):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    length = int(split_size_or_sections)  # type: ignore[arg-type]
    if length < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={length}")
    dim = _dimension(tensor, dim, "split")
    size = tensor._shape[dim]
    if length == 0 and size:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )
    return _cut(tensor, _equal_sizes(size, length) if size else [0], dim)


@composite(view=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of at most `chunks` parts of equal size (but for the last) along a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.chunk(tp.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = _dimension(input, dim, "chunk")
    size = input._shape[dim]
    return _cut(input, _equal_sizes(size, -(-size // chunks)) if size else [0] * chunks, dim)


@composite(view=True)
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | Tensor,
    dim: int = 0,
) -> tuple[Tensor, ...]:
    """Return views of parts along a dimension: so many of nearly equal size, or cut before given indices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor_split(tp.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    dim = _dimension(input, dim, "tensor_split")
    given: Any = indices_or_sections
    if isinstance(indices_or_sections, TensorBase):
        if given.dtype is not int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{scalar_type(given.dtype)}"
            )
        if len(given._shape) > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {len(given._shape)} dims"
            )
        given = given.tolist()
    size = input._shape[dim]
    if is_truth(given) or isinstance(given, (bytes, dict)):
        raise TypeError(
            "tensor_split(): argument 'indices_or_sections' must be int or tuple of ints, not "
            f"{type(given).__name__}"
        )
    if isinstance(given, int):
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        small, larger = divmod(size, given)
        # Each is a view by itself, as in torch, and so may be written to while recording.
        return _parts(input, [small + (n < larger) for n in range(given)], dim)
    # Cuts beyond the end, from the end, or out of order give what slices between them give.
    cuts = [0, *given, size]
    parts = []
    for start, stop in pairwise(cuts):
        first, last, _ = slice(start, stop).indices(size)
        parts.append(part(input, dim, first, max(first, last)))
    return tuple(parts)


def _split_along(input: Any, given: Any, dim: int, least: int, name: str) -> Any:
    check_tensor(input, name)
    if len(input._shape) < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{len(input._shape)} dimensions!"
        )
    size = input._shape[dim]
    if isinstance(given, int) and (given <= 0 or size % given):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is "
            f"not divisible by the split_size {given}!"
        )
    return tensor_split(input, given, dim)


def _places(first: Any, others: tuple[int, ...]) -> Any:
    """Return where to split, which methods take one by one, too."""
    return (first, *others) if others else first


@composite(view=True)
def hsplit(
    input: Tensor, indices_or_sections: int | Sequence[int], *others: int
) -> tuple[Tensor, ...]:
    """Return views of parts along the second dimension, or the only one: see :func:`tensor_split`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hsplit(tp.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    dim = 0 if len(input._shape) == 1 else 1
    return _split_along(input, _places(indices_or_sections, others), dim, 1, "hsplit")


@composite(view=True)
def vsplit(
    input: Tensor, indices_or_sections: int | Sequence[int], *others: int
) -> tuple[Tensor, ...]:
    """Return views of parts along the first dimension of at least two: see :func:`tensor_split`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> [p.shape for p in tp.vsplit(tp.zeros(4, 2), 2)]
    [Size([2, 2]), Size([2, 2])]
    """
    return _split_along(input, _places(indices_or_sections, others), 0, 2, "vsplit")


@composite(view=True)
def dsplit(
    input: Tensor, indices_or_sections: int | Sequence[int], *others: int
) -> tuple[Tensor, ...]:
    """Return views of parts along the third dimension: see :func:`tensor_split`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> [p.shape for p in tp.dsplit(tp.zeros(1, 2, 4), 2)]
    [Size([1, 2, 2]), Size([1, 2, 2])]
    """
    return _split_along(input, _places(indices_or_sections, others), 2, 3, "dsplit")
