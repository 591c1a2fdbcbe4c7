"""Sparse tensors that take another shape in place."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import int64
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import empty
from tensorplug.core.tensor.shapes import as_ints

from .tensors import CooTensor, CsrTensor, SparseTensor


def _sizes(name: str, tensor: Any, size: Any, sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    """Return the sizes, and refuse a tensor that is no sparse one or may not be written to."""
    if not isinstance(tensor, CooTensor):
        raise NotImplementedError(
            f"{name}(): only tensors of layout sparse_coo are resized by it, got {tensor.layout}"
        )
    _check_writable(name, tensor)
    sizes = as_ints(tuple(size))
    if len(sizes) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"{name}(): 'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(sizes)}, "
            f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    return sizes


def _check_writable(name: str, tensor: SparseTensor) -> None:
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    if recorded and tensor.requires_grad:
        raise RuntimeError(
            f"{name}(): a leaf Variable that requires grad is being used in an in-place operation; the "
            "shape of a tensor that requires grad changes within `with tp.no_grad():`, or of its detach()"
        )


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a sparse tensor another shape, in place; elements keep their places.

    Parameters
    ----------
    size : tuple of int
        The new shape; no size becomes smaller unless nothing is stored.
    sparse_dim, dense_dim : int
        How many dimensions are addressed by coordinates, and how many are stored whole. They change only if
        nothing is stored.

    Notes
    -----
    Where a dense dimension grows, the new elements of the values are zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.eye(2).to_sparse()
    >>> x.sparse_resize_((2, 3), 2, 0).shape
    Size([2, 3])
    """
    name = "sparse_resize_"
    sizes = _sizes(name, self, size, sparse_dim, dense_dim)
    if not self._nnz():
        return _emptied(self, sizes, sparse_dim)
    for kind, former, wanted in (
        ("sparse", self.sparse_dim(), sparse_dim),
        ("dense", self.dense_dim(), dense_dim),
    ):
        if former != wanted:
            raise RuntimeError(
                f"{name}(): changing the number of {kind} dimensions (from {former} to {wanted}) on a "
                "non-empty sparse tensor is not supported; sparse_resize_and_clear_() empties it"
            )
    for kind, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
        if any([new < old for new, old in zip(sizes[part], self._shape[part], strict=True)]):
            raise RuntimeError(
                f"{name}(): shrinking the size of {kind} dimensions (from {list(self._shape[part])} to "
                f"{list(sizes[part])}) on a non-empty sparse tensor is not supported; "
                "sparse_resize_and_clear_() empties it"
            )
    values = self._stored
    if values._shape[1:] != sizes[sparse_dim:]:
        grown = values.new_zeros((values._shape[0], *sizes[sparse_dim:]))
        grown[tuple([slice(n) for n in values._shape])] = values
        values = grown
    return self._take(CooTensor.of(self._where, values, sizes, self._coalesced))


def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a sparse tensor another shape, in place, and drop all of its elements.

    Parameters
    ----------
    size : tuple of int
        The new shape.
    sparse_dim, dense_dim : int
        How many dimensions are addressed by coordinates, and how many are stored whole.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2).to_sparse().sparse_resize_and_clear_((3, 2), 1, 1)._nnz()
    0
    """
    sizes = _sizes("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim)
    return _emptied(self, sizes, sparse_dim)


def _emptied(tensor: CooTensor, sizes: tuple[int, ...], sparse_dim: int) -> Any:
    where = empty((sparse_dim, 0), dtype=int64, device=tensor.device)
    values = empty((0, *sizes[sparse_dim:]), dtype=tensor.dtype, device=tensor.device)
    return tensor._take(CooTensor.of(where, values, sizes, True))


def resized(tensor: SparseTensor, size: tuple[int, ...]) -> Any:
    """Give a matrix that is stored row by row other sizes, in place: ``resize_`` of it.

    New rows are empty; where there are fewer, the last one holds what the rows behind it held, as far as
    there is room, as in torch.
    """
    if not isinstance(tensor, CsrTensor):
        raise NotImplementedError(
            f"resize_(): not of a tensor of layout {tensor.layout}; sparse_resize_() is"
        )
    _check_writable("resize_", tensor)
    if len(size) != 2:
        kind = RuntimeError if len(size) < 2 else NotImplementedError
        raise kind(
            "torch.resize_: Only batched sparse CSR matrices are supported, but got size "
            f"{list(size)}; batches are not there, so a matrix stays one"
        )
    rows, columns = size
    if columns < tensor._shape[1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. "
            f"The original number of columns is {tensor._shape[1]} while the requested new number of "
            f"columns is {columns}."
        )
    if min(size) < 0:
        raise RuntimeError(f"resize_(): negative sizes are not allowed, got {list(size)}")
    starts = tensor._starts
    count = min(tensor._nnz(), rows * columns)
    made = starts.new_full((rows + 1,), count)
    kept = min(rows, tensor._shape[0])
    made[:kept] = starts[:kept].clamp(max=count)
    return tensor._take(CsrTensor.of(made, tensor._columns[:count], tensor._stored[:count], size))


def resized_as(tensor: Any, template: Any) -> Any:
    """Give a sparse tensor the sizes of another of its layout, in place: ``resize_as_`` of it."""
    if getattr(template, "layout", None) is not tensor.layout:
        raise NotImplementedError(
            f"resize_as_(): a tensor of layout {tensor.layout} takes the sizes of another of it, got "
            f"{getattr(template, 'layout', template)}"
        )
    if isinstance(tensor, CsrTensor):
        return resized(tensor, template._shape)
    return sparse_resize_(tensor, template._shape, template.sparse_dim(), template.dense_dim())
