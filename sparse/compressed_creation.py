"""How sparse tensors whose rows or columns are stored one after another are made of their parts."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.tensor.layout import layout
from tensorplug.core.tensor.shapes import Shape, as_ints

from .compressed import CompressedTensor
from .creation import integers, is_asked, is_looked_at, stored_values
from .invariants import check_given, check_indices, check_order, check_parts, dims_of
from .layouts import COMPRESSED, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr, title


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse tensor whose rows or columns are stored one after another.

    Parameters
    ----------
    compressed_indices : array_like
        (batch, rows + 1) or, of layouts by columns, (batch, columns + 1): where in the other two each row or
        column begins, and the last one ends. Of layouts of blocks these are rows and columns of blocks.
    plain_indices : array_like
        (batch, nnz): the column, or the row, of each value.
    values : array_like
        (batch, nnz, dense), or of blocks (batch, nnz, rows, columns, dense).
    size : tuple of int, optional
        The shape, (batch, rows, columns, dense); by default the smallest that holds all.
    dtype, device : optional
        By default those of `values`.
    layout : layout
        ``tp.sparse_csr`` or ``sparse_csc``, of elements by rows or by columns; ``tp.sparse_bsr`` or
        ``sparse_bsc``, of blocks.
    pin_memory : bool
        Accepted for torch's sake.
    requires_grad : bool
        Whether the tensor is a leaf that gradients are computed of.
    check_invariants : bool, optional
        Look also at whether what is in a row is in order, each column once; by default as
        ``tp.sparse.check_sparse_tensor_invariants`` says.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.sparse_compressed_tensor([0, 1], [1], [2.0], layout=tp.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 2.]])
    """
    name = "sparse_compressed_tensor"
    if layout not in COMPRESSED:
        found = "none" if layout is None else title(layout)
        raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {found}")
    asked = is_asked(check_invariants)
    if asked:
        check_given(layout, compressed_indices, plain_indices, values)
    stored = stored_values(values, dtype, device, requires_grad)
    starts = integers(compressed_indices, stored.device, name)
    plain = integers(plain_indices, stored.device, name)
    shape = None if size is None else as_ints(tuple(size))
    dims = dims_of(layout, starts, plain, stored, shape)
    if shape is None:
        shape = _smallest(layout, starts, plain, stored, *dims)
    check_parts(layout, starts, plain, stored, shape)
    made = CompressedTensor.of(layout, starts, plain, stored, shape)
    if is_looked_at(check_invariants, stored):
        check_indices(made)
        if asked:
            check_order(made)
    return made


def _smallest(shown: Any, starts: Any, plain: Any, values: Any, batch: int, dense: int) -> Shape:
    """Return the shape of a tensor that has a row or column for each that begins, and just enough others."""
    count = max(starts._shape[-1] - 1, 0)
    other = int(plain.max()) + 1 if plain.numel() else 0
    sizes = [count, other] if shown.by_rows else [other, count]
    if shown.blocked:
        block = values._shape[batch + 1 : batch + 3]
        sizes = [number * max(size, 1) for number, size in zip(sizes, block, strict=True)]
    return (*starts._shape[:batch], *sizes, *values._shape[len(values._shape) - dense :])


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse matrix, or a batch of them, that is stored row by row.

    Parameters
    ----------
    crow_indices : array_like
        (batch, rows + 1): where in the other two each row begins, and the last one ends.
    col_indices : array_like
        (batch, nnz): the column of each value.
    values : array_like
        (batch, nnz, dense).
    size, dtype, device, pin_memory, requires_grad, check_invariants
        As of :func:`sparse_compressed_tensor`.
    layout : layout, optional
        None, or ``tp.sparse_csr``.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    _check_layout("sparse_csr_tensor", sparse_csr, layout)
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=sparse_csr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse matrix, or a batch of them, that is stored column by column.

    Parameters
    ----------
    ccol_indices : array_like
        (batch, columns + 1): where in the other two each column begins, and the last one ends.
    row_indices : array_like
        (batch, nnz): the row of each value.
    values : array_like
        (batch, nnz, dense).
    size, dtype, device, pin_memory, requires_grad, check_invariants
        As of :func:`sparse_compressed_tensor`.
    layout : layout, optional
        None, or ``tp.sparse_csc``.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sparse_csc_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]).to_dense()
    tensor([[0., 4.],
            [0., 0.],
            [3., 5.]])
    """
    _check_layout("sparse_csc_tensor", sparse_csc, layout)
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=sparse_csc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse matrix, or a batch of them, of blocks that are stored row by row.

    Parameters
    ----------
    crow_indices : array_like
        (batch, rows of blocks + 1): where in the other two each of these rows begins, and the last one ends.
    col_indices : array_like
        (batch, nnz): the column of each block, counted in blocks.
    values : array_like
        (batch, nnz, rows of a block, columns of a block, dense).
    size, dtype, device, pin_memory, requires_grad, check_invariants
        As of :func:`sparse_compressed_tensor`.
    layout : layout, optional
        None, or ``tp.sparse_bsr``.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sparse_bsr_tensor([0, 1, 2], [1, 0], [[[1.0, 2.0]], [[3.0, 4.0]]]).to_dense()
    tensor([[0., 0., 1., 2.],
            [3., 4., 0., 0.]])
    """
    _check_layout("sparse_bsr_tensor", sparse_bsr, layout)
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=sparse_bsr, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a sparse matrix, or a batch of them, of blocks that are stored column by column.

    Parameters
    ----------
    ccol_indices : array_like
        (batch, columns of blocks + 1): where in the other two each of these columns begins, and the last one
        ends.
    row_indices : array_like
        (batch, nnz): the row of each block, counted in blocks.
    values : array_like
        (batch, nnz, rows of a block, columns of a block, dense).
    size, dtype, device, pin_memory, requires_grad, check_invariants
        As of :func:`sparse_compressed_tensor`.
    layout : layout, optional
        None, or ``tp.sparse_bsc``.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sparse_bsc_tensor([0, 1, 2], [1, 0], [[[1.0, 2.0]], [[3.0, 4.0]]]).to_dense()
    tensor([[0., 0., 3., 4.],
            [1., 2., 0., 0.]])
    """
    _check_layout("sparse_bsc_tensor", sparse_bsc, layout)
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=sparse_bsc, device=device,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def _check_layout(name: str, own: layout, given: Any) -> None:
    if given is not None and given is not own:
        raise RuntimeError(f"{name}: layout must be {title(own)} but got {title(given)}")
