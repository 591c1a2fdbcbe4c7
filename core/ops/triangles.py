"""Triangles of matrices, and the positions of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.device import Device
from ..device.dtypes import DType, bool_, int32, int64, scalar_type
from ..dispatch import op_registry
from ..dispatch.op_registry import composite
from ..dispatch.out_dtypes import exact_out
from ..tensor.creation import tensor
from .comparison import ge, le
from .copying import clone, copied
from .creation.creation import fill_new, options
from .masking import where
from .rearranging import cast_to
from .rules import check_tensor
from .shape.shape import permuted

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["tril", "tril_indices", "triu", "triu_indices"]

_FEW = 1024  # elements of a matrix whose triangle is found in Python

_ARANGE = op_registry.handle("arange")
_NONZERO = op_registry.handle("nonzero")


def _check_matrix(input: Any, name: str) -> None:
    check_tensor(input, name)
    if len(input._shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def _distances(input: Any) -> Any:
    """Return, for each place of a matrix, how far right of the diagonal it lies."""
    rows, columns = input._shape[-2:]
    device = input.device
    return _ARANGE.call(columns, device=device) - _ARANGE.call(rows, device=device).unsqueeze(1)


def _canonical_tril(input: Any, diagonal: int = 0) -> tuple[Tensor, int]:
    _check_matrix(input, "tril")
    return input, int(diagonal)


@composite(rule=_canonical_tril, rows=True, inplace=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of a matrix, or a batch of them, with zeros above a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tril(tp.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return where(le(_distances(input), diagonal), input, input.new_zeros(()))


def _canonical_triu(input: Any, diagonal: int = 0) -> tuple[Tensor, int]:
    _check_matrix(input, "triu")
    return input, int(diagonal)


@composite(rule=_canonical_triu, rows=True, inplace=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of a matrix, or a batch of them, with zeros below a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.triu(tp.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return where(ge(_distances(input), diagonal), input, input.new_zeros(()))


def _triangle_indices(
    function: Any, row: int, col: int, offset: int, dtype: Any, device: Any
) -> Any:
    if row < 0 or col < 0:
        raise RuntimeError(f"row and col must be non-negative, got {row} and {col}")
    chosen, where = options(dtype, device, int64)
    if chosen is not int64 and chosen is not int32:
        name = f"{function.__name__}_indices"
        raise NotImplementedError(
            f'{name}(): "{name}" not implemented for {scalar_type(chosen)!r}; positions are int64 or int32'
        )
    if row * col <= _FEW:  # a table, which calls that are replayed copy
        below = function is tril
        places = [
            (i, j)
            for i in range(row)
            for j in range(col)
            if (j - i <= offset if below else j - i >= offset)
        ]
        flat = [i for i, _ in places] + [j for _, j in places]
        return copied(tensor(flat, dtype=chosen, device=where).reshape(2, len(places)))
    mask = function(fill_new((row, col), 1, bool_, where), offset)
    return cast_to(clone(permuted(_NONZERO.call(mask), (1, 0))), chosen)


@composite(method=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    layout: Any = None,
) -> Tensor:
    """Return the positions of the lower triangle of a matrix: rows in ``[0]``, columns in ``[1]``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices(tril, row, col, offset, dtype, device)


@composite(method=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
    layout: Any = None,
) -> Tensor:
    """Return the positions of the upper triangle of a matrix: rows in ``[0]``, columns in ``[1]``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices(triu, row, col, offset, dtype, device)


exact_out(tril, triu)
