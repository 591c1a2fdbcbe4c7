"""Methods of every tensor that are about sparse ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .arithmetic import sparse_mask as sparse_mask  # noqa: PLC0414  also a method
from .creation import to_layout
from .layouts import sparse_coo, sparse_csr
from .products import sspaddmm as sspaddmm  # noqa: PLC0414
from .resizing import (
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
        ``tp.sparse_coo``, the default, or ``tp.sparse_csr``.
    blocksize, dense_dim
        Only None and 0: of layouts that are not there.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.eye(2).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [0, 1]]),
           values=tensor([1., 1.]),
           size=(2, 2), nnz=2, layout=tensorplug.sparse_coo)
    """
    if blocksize is not None or dense_dim:
        raise NotImplementedError("to_sparse(): there are no blocks, and no dense_dim of rows")
    return to_layout(self, sparse_coo if layout is None else layout, "to_sparse", sparse_dim)


def to_sparse_coo(self: Any) -> Any:
    """Return the tensor with the coordinates of its elements."""
    return to_layout(self, sparse_coo, "to_sparse_coo")


def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Return the matrix stored row by row."""
    if dense_dim:
        raise NotImplementedError(
            "to_sparse_csr(): rows of single elements; dense_dim is not there"
        )
    return to_layout(self, sparse_csr, "to_sparse_csr")


def _not_stored(name: str) -> Any:
    """Return a method for a layout that there is not."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}(): sparse tensors are COO or CSR; a CSC matrix is the transpose of a CSR one: "
            "x.t().to_sparse_csr()"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise: sparse tensors are stored by coordinates or row by row."
    return refuse


to_sparse_bsc = _not_stored("to_sparse_bsc")
to_sparse_bsr = _not_stored("to_sparse_bsr")
to_sparse_csc = _not_stored("to_sparse_csc")


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
            raise RuntimeError(
                f"{name} expected {kind} tensor layout but got {self.layout.name.title().replace('_', '')}"
            )

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
