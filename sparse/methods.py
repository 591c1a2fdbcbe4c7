"""Methods of every tensor that are about sparse ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .arithmetic import sparse_mask as sparse_mask  # noqa: PLC0414  also a method
from .conversions import to_layout
from .layouts import not_of, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .products import sspaddmm as sspaddmm  # noqa: PLC0414
from .resizing import (
    resize_as_sparse_ as resize_as_sparse_,  # noqa: PLC0414
    sparse_resize_ as sparse_resize_,  # noqa: PLC0414
    sparse_resize_and_clear_ as sparse_resize_and_clear_,  # noqa: PLC0414
)

R = TypeVar("R")


def to_sparse(
    self: Any,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """Return the tensor in a sparse layout.

    Parameters
    ----------
    sparse_dim : int, optional
        Of how many of the first dimensions coordinates are stored; by default of all.
    layout : layout, optional
        ``tp.sparse_coo``, the default, ``tp.sparse_csr``, ``sparse_csc``, ``sparse_bsr`` or ``sparse_bsc``.
    blocksize : tuple of int, optional
        Rows and columns of the blocks of ``tp.sparse_bsr`` and ``sparse_bsc``.
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole; by default none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [0, 1]]),
           values=tensor([1., 1.]),
           size=(2, 2), nnz=2, layout=tensorplug.sparse_coo)
    """
    wanted = sparse_coo if layout is None else layout
    return to_layout(self, wanted, "to_sparse", sparse_dim, blocksize, dense_dim)


def to_sparse_coo(self: Any) -> Any:
    """Return the tensor with the coordinates of its elements."""
    return to_layout(self, sparse_coo, "to_sparse_coo")


def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Return the matrix, or a batch of them, stored row by row.

    Parameters
    ----------
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole; by default none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return to_layout(self, sparse_csr, "to_sparse_csr", dense_dim=dense_dim)


def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """Return the matrix, or a batch of them, stored column by column.

    Parameters
    ----------
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole; by default none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return to_layout(self, sparse_csc, "to_sparse_csc", dense_dim=dense_dim)


def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return the matrix, or a batch of them, as blocks that are stored row by row.

    Parameters
    ----------
    blocksize : tuple of int
        Rows and columns of a block, by which the matrix can be divided.
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole; by default none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(4).to_sparse_bsr((2, 2)).values().shape
    Size([2, 2, 2])
    """
    return to_layout(self, sparse_bsr, "to_sparse_bsr", None, blocksize, dense_dim)


def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return the matrix, or a batch of them, as blocks that are stored column by column.

    Parameters
    ----------
    blocksize : tuple of int
        Rows and columns of a block, by which the matrix can be divided.
    dense_dim : int, optional
        How many of the last dimensions of a dense tensor are stored whole; by default none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(4).to_sparse_bsc((4, 1)).row_indices()
    tensor([0, 0, 0, 0])
    """
    return to_layout(self, sparse_bsc, "to_sparse_bsc", None, blocksize, dense_dim)


def smm(self: Any, mat: Any) -> Any:
    """Return the product of a sparse matrix and a dense one, as a sparse one."""
    from . import smm as product  # it needs the whole package

    return product(self, mat)


def of_the_layout(method: Callable[[Any], R]) -> Callable[[Any], R]:
    """Have a method, called through the class of all tensors, be that of a sparse tensor's own."""

    @functools.wraps(method)
    def call(self: Any) -> R:
        own = getattr(type(self), method.__name__)
        return method(self) if own is call else own(self)

    return call


@of_the_layout
def sparse_dim(self: Any) -> int:
    """Return how many dimensions are addressed by coordinates: of a dense tensor none."""
    return 0


@of_the_layout
def dense_dim(self: Any) -> int:
    """Return how many dimensions are stored whole: of a dense tensor all."""
    return len(self._shape)


def _of(kind: str) -> Any:
    """Return a function that makes a method that only some layouts have."""

    def make(name: str) -> Any:
        def refuse(self: Any) -> Any:
            raise not_of(name, kind, self.layout)

        refuse.__name__ = refuse.__qualname__ = name
        refuse.__doc__ = f"Raise: only a tensor of {kind} layout has ``{name}``."
        return of_the_layout(refuse)

    return make


coalesce = _of("sparse coordinate")("coalesce")
is_coalesced = _of("sparse coordinate")("is_coalesced")
indices = _of("sparse coordinate")("indices")
values = _of("sparse")("values")
crow_indices = _of("sparse row compressed")("crow_indices")
col_indices = _of("sparse row compressed")("col_indices")
ccol_indices = _of("sparse column compressed")("ccol_indices")
row_indices = _of("sparse column compressed")("row_indices")
_nnz = _of("sparse")("_nnz")
_indices = _of("sparse coordinate")("_indices")
_values = _of("sparse coordinate")("_values")
