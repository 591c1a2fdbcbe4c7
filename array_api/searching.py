"""Functions that find, sort and compare elements as sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import Number

from .array import Array, wrap
from .promotion import align

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


# --- places -------------------------------------------------------------------------------------


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return where the greatest element is, the first of several."""
    return wrap(ops.argmax(x, axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return where the least element is, the first of several."""
    return wrap(ops.argmin(x, axis, keepdims))


def nonzero(x: Tensor, /) -> tuple[Array, ...]:
    """Return the positions of the elements that are not 0, one array per dimension.

    Raises
    ------
    ValueError
        If `x` has no dimension.
    """
    if not x.ndim:
        raise ValueError("nonzero(): a 0-d array has no positions; use reshape(x, (1,))")
    return tuple([wrap(places) for places in ops.nonzero(x, as_tuple=True)])


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: str = "left",
    sorter: Tensor | None = None,
) -> Array:
    """Return where in the sorted `x1` the elements of `x2` would have to be put in.

    Parameters
    ----------
    side : {"left", "right"}
        Before or after the elements that equal it.
    sorter : Array, optional
        Positions that sort `x1`.
    """
    source: Any = x1 if sorter is None else x1[sorter]
    if not isinstance(x2, Tensor):
        x2 = ops.full((), x2, dtype=x1.dtype, device=x1.device)
    ordered, values = align(source, x2)
    return wrap(ops.searchsorted(ordered, values, side=side))


def where(
    condition: Tensor,
    x1: Tensor | Number | None = None,
    x2: Tensor | Number | None = None,
    /,
) -> Any:
    """Return the elements of `x1` where the condition holds, and those of `x2` elsewhere.

    The condition alone gives :func:`nonzero`, as in NumPy and torch, which scikit-learn relies on.
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    return wrap(ops.where(condition, *align(x1, x2)))


# --- order --------------------------------------------------------------------------------------


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Array:
    """Return the positions along an axis that sort `x`; equal elements keep their order if `stable`."""
    return wrap(ops.argsort(x, axis, descending, stable=stable))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return `x` sorted along an axis."""
    return wrap(ops.sort(x, axis, descending, stable=stable)[0])


# --- sets ---------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Array:
    """Return for each element of `x1` whether `x2` has it, or has it not if `invert`."""
    elements, tests = align(x1, x2)
    return wrap(ops.isin(elements, tests, invert=invert))


def _unique(x: Any) -> tuple[Any, Any, Any]:
    """Return the distinct elements, which one each element is, and how often each occurs."""
    if not x.dtype.is_complex:
        found = ops.unique(x, return_inverse=True, return_counts=True)
        return found[0], found[1], found[2]
    pairs = ops.view_as_real(ops.flatten(x))
    rows, inverse, counts = ops.unique(pairs, return_inverse=True, return_counts=True, dim=0)
    return ops.view_as_complex(rows), inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements, where each occurs first, which each one is, how often each occurs.

    NaNs are distinct from one another.

    Examples
    --------
    >>> import tensorplug.array_api as xp
    >>> xp.unique_all(xp.asarray([5, 3, 5])).indices
    Array([1, 0])
    """
    values, inverse, counts = _unique(x)
    order: Any = ops.argsort(ops.flatten(inverse), stable=True)
    first = order[ops.cumsum(counts, 0) - counts]
    return UniqueAll(wrap(values), wrap(first), wrap(inverse), wrap(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements and how often each occurs."""
    values, _, counts = _unique(x)
    return UniqueCounts(wrap(values), wrap(counts))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements and, in the shape of `x`, the position of each element among them."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(wrap(values), wrap(inverse))


def unique_values(x: Tensor, /) -> Array:
    """Return the distinct elements, sorted."""
    return wrap(_unique(x)[0])
