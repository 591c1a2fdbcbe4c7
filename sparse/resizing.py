"""Sparse tensors that take another shape in place."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import int64
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops import empty
from tensorplug.core.tensor.shapes import as_ints

from .compressed import CompressedTensor
from .coordinates import CooTensor
from .layouts import COMPRESSED, not_of, title
from .tensors import SparseTensor


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
    """Give matrices that are stored row by row or column by column other sizes, in place: their ``resize_``.

    New rows are empty; where there are fewer, the last one holds what the rows behind it held, as far as
    there is room, as in torch.
    """
    if not isinstance(tensor, CompressedTensor):
        raise NotImplementedError(
            f"resize_(): not of a tensor of layout {tensor.layout}; sparse_resize_() is"
        )
    _check_writable("resize_", tensor)
    if len(size) < 2:
        raise RuntimeError(
            "torch.resize_: Only batched sparse CSR matrices are supported, but got size "
            f"{list(size)}"
        )
    if min(size) < 0:
        raise RuntimeError(f"resize_(): negative sizes are not allowed, got {list(size)}")
    starts, plain, values = tensor._parts()
    batch = tensor._shape[: tensor._batch]
    if tensor._layout.blocked or tensor.dense_dim() or tuple(size[:-2]) not in (batch, ()):
        raise NotImplementedError(
            f"resize_(): of matrices of single elements, and of as many of them or one, got {list(size)} for "
            f" {list(tensor.shape)} of layout {tensor.layout}"
        )
    if len(size) == 2:  # the first of a batch
        for _ in batch:
            starts, plain, values = starts[0], plain[0], values[0]
    number = 0 if tensor._layout.by_rows else 1
    former, wanted = tensor._shape[-2:], size[-2:]
    other, kind = 1 - number, ("rows", "columns")[1 - number]
    if wanted[other] < former[other]:
        raise RuntimeError(
            f"torch.resize_: Resizing {kind} of sparse {tensor._kind} tensors to a smaller value is not "
            f"supported. The original number of {kind} is {former[other]} while the requested new number of "
            f"{kind} is {wanted[other]}."
        )
    count = min(tensor._nnz(), wanted[0] * wanted[1])
    made = starts.new_full((*starts._shape[:-1], wanted[number] + 1), count)
    kept = min(wanted[number], former[number])
    made[..., :kept] = starts[..., :kept].clamp(max=count)
    parts = made, plain[..., :count], values[..., :count]
    return tensor._take(CompressedTensor.of(tensor._layout, *parts, size))


def resized_as(tensor: Any, template: Any) -> Any:
    """Give a sparse tensor the sizes of another of its layout, in place: ``resize_as_`` of it."""
    if getattr(template, "layout", None) is not tensor.layout:
        raise NotImplementedError(
            f"resize_as_(): a tensor of layout {tensor.layout} takes the sizes of another of it, got "
            f"{getattr(template, 'layout', template)}"
        )
    if isinstance(tensor, CompressedTensor):
        return resized(tensor, template._shape)
    return sparse_resize_(tensor, template._shape, template.sparse_dim(), template.dense_dim())


def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """Give a sparse tensor the sizes of another of its layout, in place, and places for as many elements.

    Parameters
    ----------
    the_template : Tensor
        A sparse tensor of the layout. Of COO elements keep their places. Of the other layouts the indices
        become those of the template; where its values are of another shape, all are zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.eye(2).to_sparse_csr()
    >>> x.resize_as_sparse_(tp.ones(2, 3).to_sparse_csr()).to_dense()
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    layouts: Any = self.layout, getattr(the_template, "layout", None)
    if not isinstance(self, CompressedTensor) and not isinstance(the_template, CompressedTensor):
        return resized_as(self, the_template)
    for name, shown in zip(("self", "src"), layouts, strict=True):
        if shown not in COMPRESSED:
            raise not_of(f"resize_as_sparse_compressed_: {name} ", "sparse compressed", shown)
    if layouts[0] is not layouts[1]:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self "
            f"({title(layouts[0])}) and source ({title(layouts[1])})"
        )
    _check_writable("resize_as_sparse_", self)
    starts, plain, like = the_template._parts()
    values = self._stored
    if values._shape != like._shape:
        values = values.new_zeros(like._shape)
    own = self._starts
    starts, plain = [part.to(own.device, own.dtype, copy=True) for part in (starts, plain)]
    shape = the_template._shape
    return self._take(CompressedTensor.of(layouts[0], starts, plain, values, shape))
