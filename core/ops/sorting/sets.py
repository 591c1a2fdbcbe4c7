"""Distinct elements, and membership."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, bool_, int64, promote_types, result_dtype
from ...dispatch.op_registry import Delegated, composite, handle
from ...dispatch.out_dtypes import exact_out
from ...dispatch.state import dispatch_state
from ...tensor.base import TensorBase
from ...tensor.creation import tensor
from ...tensor.shapes import existing_dim
from ..reductions.reductions import any, refuse_complex
from ..rules import cast, check_tensor
from .searching import searchsorted
from .sorting import argsort, nonzero, sort

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["isin", "unique", "unique_consecutive"]

_ARANGE = handle("arange")
_CAT = handle("cat")
_ONES = handle("ones")
_FULL = handle("full")
_MASKED_SELECT = handle("masked_select")
_ZEROS = handle("zeros")


@composite(method=False)
def lexsort(input: Tensor) -> Tensor:
    """Return the indices that sort the rows of a matrix, by the first element first."""
    rows, columns = input._shape
    if columns == 1:
        return argsort(input.select(1, 0), 0)
    order = _ARANGE.call(rows, device=input.device)
    for column in range(columns - 1, -1, -1):
        keys = input.select(1, column).gather(0, order)
        order = order.gather(0, argsort(keys, 0))
    return order


def _starts(rows: Tensor) -> Tensor:
    """Return whether each row differs from the one before it; the first does."""
    size = rows._shape[0]
    first = _ONES.call(1 if size else 0, dtype=bool_, device=rows.device)
    if size < 2:
        return first
    differs = rows.narrow(0, 1, size - 1) != rows.narrow(0, 0, size - 1)
    if len(rows._shape) > 1:
        differs = any(differs, 1)
    return _CAT.call([first, differs])


def _lengths(heads: Tensor, size: int) -> Tensor:
    """Return how long each run is, of runs that start at `heads` and end where the next one starts."""
    ends = _CAT.call([heads, _FULL.call((1,), size, dtype=int64, device=heads.device)])
    return ends.narrow(0, 1, heads._shape[0]) - heads


def _as_rows(input: Tensor, dim: int | None, name: str) -> tuple[Tensor, int]:
    """Return the input flat, or as a matrix with a row for each slice along `dim`, and the dim."""
    if dim is None:
        return input.reshape(-1), 0
    dim = _sliced(input._shape, dim, name)
    others = [size for d, size in enumerate(input._shape) if d != dim]
    return input.movedim(dim, 0).reshape(input._shape[dim], math.prod(others)), dim


def _sliced(shape: Any, dim: int, name: str) -> int:
    """Return the canonical dimension whose slices are compared; they must not be empty."""
    dim = existing_dim(dim, len(shape), name)
    if 0 in (*shape[:dim], *shape[dim + 1 :]):
        raise RuntimeError(
            f"{name}(): there are dimensions of size 0 besides dim {dim}, so unique cannot be "
            f"applied; got shape {list(shape)}"
        )
    return dim


def _truth_values(input: Tensor, return_inverse: bool, return_counts: bool) -> Any:
    """Return which of False and True there are, and what :func:`unique` returns besides."""
    rows = input.reshape(-1)
    if not (dispatch_state.layers_active or input.is_meta):
        return _counted_truth_values(input, rows, return_inverse, return_counts)
    hold = rows.count_nonzero().reshape(1)
    counts = _CAT.call([rows._shape[0] - hold, hold])
    present = counts > 0
    heads = nonzero(present).reshape(-1)
    found = [heads.to(bool_)]
    if return_inverse:
        found.append((present.cumsum(0) - 1).index_select(0, rows.to(int64)).reshape(input._shape))
    if return_counts:
        found.append(counts.index_select(0, heads))
    return tuple(found) if len(found) > 1 else found[0]


def _counted_truth_values(input: Any, rows: Any, return_inverse: bool, return_counts: bool) -> Any:
    """Return the same, by one number that the host reads."""
    hold = rows.count_nonzero().item()
    counts = [rows._shape[0] - hold, hold]
    where: Any = input.device
    found = [tensor([value for value in (False, True) if counts[value]], dtype=bool_, device=where)]
    if return_inverse:
        if all(counts):
            found.append(cast(input, int64))
        else:
            found.append(_ZEROS.call(input._shape, dtype=int64, device=where))
    if return_counts:
        found.append(tensor([n for n in counts if n], dtype=int64, device=where))
    return tuple(found) if len(found) > 1 else found[0]


@composite(outputs="*")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, or the distinct slices along `dim`, in ascending order.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one. Each NaN is distinct.
    sorted : bool
        Whether the result must be sorted; here it always is.
    return_inverse : bool
        Also return, for each element (or slice), which distinct one it is.
    return_counts : bool
        Also return how often each distinct one occurs.
    dim : int, optional
        Compare slices along this dimension.

    Returns
    -------
    Tensor or tuple of Tensor
        The distinct ones, then what was asked for.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.unique(tp.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
    (tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    check_tensor(input, "unique")
    refuse_complex(input, "unique")
    if len(input._shape) == 1 and dim in (0, -1):  # whose slices are its elements
        dim = None
    if input._key.dtype is bool_ and dim is None:
        return _truth_values(input, return_inverse, return_counts)
    rows, along = _as_rows(input, dim, "unique")
    if dim is None:
        ordered, order = sort(rows, 0, stable=True)
    else:
        order = lexsort(rows.detach())
        ordered = rows.index_select(0, order)
    starts = _starts(ordered.detach())
    heads = nonzero(starts).select(1, 0) if return_counts or dim is not None else None
    # Of equal elements the first one stands for all.
    if heads is None:
        found = [_MASKED_SELECT.call(ordered, starts)]
    elif dim is None:
        found = [ordered.index_select(0, heads)]
    else:
        found = [input.index_select(along, order.index_select(0, heads))]
    if return_inverse:
        run = starts.cumsum(0) - 1
        inverse = _ZEROS.call(order._shape, dtype=int64, device=input.device).scatter(0, order, run)
        found.append(inverse.reshape(input._shape) if dim is None else inverse)
    if heads is not None and return_counts:
        found.append(_lengths(heads, starts._shape[0]))
    return tuple(found) if len(found) > 1 else found[0]


def _canonical_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    check_tensor(input, "unique_consecutive")
    if dim is not None:
        dim = _sliced(input._shape, dim, "unique_consecutive")
        if len(input._shape) == 1:  # whose slices are its elements
            dim = None
    return input, return_inverse, return_counts, dim


@composite(outputs="*", rule=_canonical_consecutive)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the elements, or the slices along `dim`, that differ from the one before.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    return_inverse : bool
        Also return, for each element (or slice), which run of equal ones it belongs to.
    return_counts : bool
        Also return how long each run is.
    dim : int, optional
        Compare slices along this dimension.

    Returns
    -------
    Tensor or tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.unique_consecutive(tp.tensor([1, 1, 3, 1]), return_counts=True)
    (tensor([1, 3, 1]), tensor([2, 1, 1]))
    """
    rows, along = _as_rows(input, dim, "unique_consecutive")
    starts = _starts(rows.detach())
    heads = nonzero(starts).select(1, 0) if return_counts or dim is not None else None
    if heads is None:
        found = [_MASKED_SELECT.call(rows, starts)]
    else:
        found = [(rows if dim is None else input).index_select(along, heads)]
    if return_inverse:
        run = starts.cumsum(0) - 1
        found.append(run.reshape(input._shape) if dim is None else run)
    if heads is not None and return_counts:
        found.append(_lengths(heads, starts._shape[0]))
    return tuple(found) if len(found) > 1 else found[0]


def _canonical_isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    tensors: list[Any] = [
        value for value in (elements, test_elements) if isinstance(value, TensorBase)
    ]
    if not tensors:
        raise TypeError("isin(): at least one of elements and test_elements must be Tensor")
    for value in (elements, test_elements):
        if isinstance(value, (bool, complex)):
            raise RuntimeError(f"isin(): {type(value).__name__} numbers are not supported")
        if not isinstance(value, (TensorBase, int, float)):
            raise TypeError(f"isin(): expected a Tensor or a number, got {type(value).__name__}")
    device = tensors[0].device
    for given in tensors:
        if given.dtype.category == BOOL:
            raise RuntimeError(
                "isin(): bool tensors are not supported; convert them with .to(tp.uint8)"
            )
    if invert:
        return Delegated(~isin(elements, test_elements))
    if not isinstance(test_elements, TensorBase):
        return Delegated(elements == test_elements)
    if not isinstance(elements, TensorBase):
        dtype = result_dtype((test_elements, elements))
        elements = _FULL.call((), elements, dtype=dtype, device=device)
    tests: Any = test_elements if len(test_elements._shape) == 1 else test_elements.reshape(-1)  # type: ignore[attr-defined]
    if tests._shape[0] == 0:
        return Delegated(_ZEROS.call(elements._shape, dtype=bool_, device=device))
    dtype = promote_types(elements._key.dtype, tests._key.dtype)
    return cast(elements, dtype), cast(tests, dtype)


@composite("elements, test_elements", rule=_canonical_isin, method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return for each of `elements` whether it is among `test_elements`.

    Parameters
    ----------
    elements, test_elements : Tensor or number
        At least one tensor.
    assume_unique : bool
        Promise that neither has equal elements; of no consequence here.
    invert : bool
        Ask whether it is not among them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.isin(tp.tensor([1, 2, 3]), tp.tensor([2, 4]))
    tensor([False,  True, False])
    """
    ordered = test_elements.gather(0, argsort(test_elements, 0))
    index = searchsorted(ordered, elements).clamp(max=ordered._shape[0] - 1)
    return ordered.index_select(0, index.reshape(-1)).reshape(elements._shape) == elements


exact_out(isin)
