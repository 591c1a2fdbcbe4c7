"""How sparse tensors are made: of their parts, of dense tensors, of other layouts."""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import partial
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import INTEGER, DType, int32, int64, scalar_type
from tensorplug.core.ops import arange, empty, stack
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.creation import as_tensor
from tensorplug.core.tensor.shapes import as_ints

from .coordinates import CooTensor
from .invariants import check_coalesced, check_within
from .layouts import sparse_coo, sparse_csc, sparse_csr, title


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Return a sparse tensor of coordinates and values.

    Parameters
    ----------
    indices : array_like
        (sparse dims, nnz): the coordinates of each value. Values at one place add up.
    values : array_like
        (nnz, dense dims): elements, or dense tensors of the last dimensions.
    size : tuple of int, optional
        The shape; by default the smallest that holds all.
    dtype, device : optional
        By default those of `values`.
    pin_memory : bool
        Accepted for torch's sake.
    requires_grad : bool
        Whether the tensor is a leaf that gradients are computed of.
    check_invariants : bool, optional
        Look at all coordinates, whether they lie within the shape; by default as
        ``tp.sparse.check_sparse_tensor_invariants`` says.
    is_coalesced : bool, optional
        Say that the coordinates are in order, each of them once.

    Raises
    ------
    RuntimeError
        If the parts do not fit each other.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=tensorplug.sparse_coo)
    """
    if values is None:
        shape = tuple(size if size is not None else indices if indices is not None else ())
        values = empty((0,), dtype=dtype, device=device)
        where = empty((len(shape), 0), dtype=int64, device=device)
        made = CooTensor.of(where, values, shape, True)
        return made.requires_grad_() if requires_grad else made
    stored = stored_values(values, dtype, device, requires_grad)
    where = integers(indices, stored.device, "sparse_coo_tensor").to(int64)
    if where.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    if not stored.dim():  # the number of one place
        stored = stored.reshape(1)
    if where._shape[1] != stored._shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{where._shape[1]}, nnz from values: {stored._shape[0]}"
        )
    sparse, dense = where._shape[0], stored._shape[1:]
    if size is None:
        largest = where.amax(1).tolist() if where._shape[1] else [-1] * sparse
        shape = (*[index + 1 for index in largest], *dense)
    else:
        shape = as_ints(tuple(size))
    if len(shape) != sparse + len(dense):
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(shape)}, sparse_dim = {sparse}, dense_dim = {len(dense)}"
        )
    if shape[sparse:] != dense:
        raise RuntimeError(
            f"values has incorrect size, expected {[where._shape[1], *shape[sparse:]]}, got "
            f"{list(stored.shape)}"
        )
    # Looked at wherever that takes no wait for a device: a place outside is no place.
    if is_looked_at(check_invariants, stored):
        check_within(where, shape[:sparse], "sparse_coo_tensor")
        if is_coalesced and is_asked(check_invariants):
            check_coalesced(where, shape[:sparse], "sparse_coo_tensor")
    return CooTensor.of(where, stored, shape, bool(is_coalesced))


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """Return a sparse matrix of diagonals.

    Parameters
    ----------
    diagonals : Tensor
        (diagonals, n), or (n,) for one: the element of column j stands at j.
    offsets : Tensor
        (diagonals,), int64 and each once: how far a diagonal is above the main one.
    shape : tuple of int
        Rows and columns of the matrix.
    layout : layout, optional
        ``tp.sparse_coo``, the default, ``tp.sparse_csr`` or ``tp.sparse_csc``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> diagonals = tp.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> tp.sparse.spdiags(diagonals, tp.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 5., 0.],
            [0., 2., 6.],
            [0., 0., 3.]])
    """
    check_tensor(diagonals, "spdiags", "diagonals")
    check_tensor(offsets, "spdiags", "offsets")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(
            "spdiags(): Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{title(layout)}"
        )
    values = diagonals.reshape(1, -1) if diagonals.ndim == 1 else diagonals
    places = offsets.reshape(-1)
    if values.ndim != 2:
        raise RuntimeError(
            f"spdiags(): Diagonals must be vector or matrix, got shape {list(diagonals.shape)}"
        )
    if len(shape) != 2:
        raise RuntimeError(f"spdiags(): Output shape must be 2d, got {tuple(shape)}")
    if offsets.ndim > 1:
        raise RuntimeError(
            f"spdiags(): Offsets must be scalar or vector, got shape {list(offsets.shape)}"
        )
    if len(places) != len(values):
        raise RuntimeError(
            f"spdiags(): Number of diagonals ({len(values)}) does not match the number of offsets "
            f"({len(places)})"
        )
    if places.dtype is not int64:
        raise RuntimeError(
            f"spdiags(): Offset Tensor must have dtype Long but got {scalar_type(places.dtype)}"
        )
    if len(places.unique()) != len(places):
        raise RuntimeError(f"spdiags(): Offset tensor contains duplicate values: {places.tolist()}")
    columns = arange(values.shape[1]).expand(values.shape)
    rows = columns - places.reshape(-1, 1)
    within = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    where = stack([rows[within], columns[within]])
    made = sparse_coo_tensor(where, values[within], shape)
    return made if layout is None else made.to_sparse(layout=layout)


def stored_values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """Return values as a tensor: a new leaf, or a view that leads back to the one that was given."""
    given = isinstance(values, TensorBase)
    stored = as_tensor(values, dtype=dtype, device=device)
    if requires_grad:
        return stored.detach().requires_grad_()
    if not given:
        return stored
    # The given tensor may take another shape later, by resize_() or t_(): the stored one keeps its own.
    return stored.view_as(stored) if stored.requires_grad else stored.detach()


def integers(indices: Any, device: Device, name: str) -> Any:
    """Return indices as a tensor on a device, of int32 if they are, else of int64."""
    found = as_tensor(indices, device=device)
    if found.dtype in (int32, int64):
        return found.detach()
    if found.dtype.category > INTEGER and bool((found != found.floor()).any()):
        raise TypeError(f"{name}(): indices must be integers, got {found.dtype}")
    return found.detach().to(int64)


class check_sparse_tensor_invariants(OwnContext, ContextDecorator):
    """Whether new sparse tensors are looked at in full, also where that waits for a device.

    On "cpu" indices are always looked at: an element outside of the shape has no place.

    Examples
    --------
    >>> import tensorplug as tp
    >>> with tp.sparse.check_sparse_tensor_invariants():
    ...     tp.sparse.check_sparse_tensor_invariants.is_enabled()
    True

    It also decorates a function.
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable

    @staticmethod
    def is_enabled() -> bool:
        """Return whether they are."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Look at them from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Look only at what is at hand from now on."""
        check_sparse_tensor_invariants._enabled = False

    def _steps(self) -> tuple[Steps, Steps]:
        setting = partial(setattr, check_sparse_tensor_invariants, "_enabled")
        return (partial(setting, self._wanted),), (partial(setting, self.is_enabled()),)


def is_looked_at(asked: bool | None, stored: Any) -> bool:
    """Return whether indices are looked at: where the caller asks for it, and where it takes no wait."""
    if stored.is_meta:
        return False
    return is_asked(asked) or stored.device.type == "cpu"


def is_asked(asked: bool | None) -> bool:
    """Return whether the caller asks for a look at all indices, or the setting does."""
    return check_sparse_tensor_invariants.is_enabled() if asked is None else asked
