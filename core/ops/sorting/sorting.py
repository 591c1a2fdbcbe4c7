"""Sorting, selection by order, and where elements are not zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ...device.dtypes import FLOATING, INTEGER, int64
from ...dispatch.op_registry import Delegated, Spec, composite, handle, primitive
from ...dispatch.out_dtypes import exact_out
from ...tensor.shapes import as_shape, normalize_dim
from .. import results
from ..cumulative import cummax
from ..reductions.extremes import pick
from ..reductions.reductions import argmax, check_not_empty, refuse_complex, sum
from ..rules import check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "argsort", "argwhere", "kthvalue", "median", "mode", "msort", "nanmedian", "nonzero",
    "nonzero_static", "sort", "topk", "unravel_index",
]  # fmt: skip

_ARANGE = handle("arange")
_CAT = handle("cat")
_FULL = handle("full")
_WHERE = handle("where")


def _refuse_complex(input: Tensor, name: str) -> None:
    check_tensor(input, name)
    if input.is_complex():
        raise RuntimeError(f"{name}(): complex numbers have no order, got {input.dtype}")


@primitive("input, dim, descending")
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Spec:
    """Return the indices that sort the elements along `dim`; NaN counts as the largest.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one.
    dim : int
        The dimension to sort along.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Whether equal elements keep their order; here they always do.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.argsort(tp.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    check_tensor(input, "argsort")
    dim = normalize_dim(dim, len(input._shape), "argsort")
    _refuse_complex(input, "argsort")
    return Spec((input, dim, bool(descending)), input._shape, int64)


def _shapeless(found: Any) -> Any:
    """Return the results of an op over the one element of a 0-d tensor in the shape of that."""
    return type(found)(*[part.reshape(()) for part in found])


def _canonical_sort(
    input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = False
) -> Any:
    check_tensor(input, "sort")
    dim = normalize_dim(dim, len(input._shape), "sort")
    _refuse_complex(input, "sort")
    if not input._shape:
        return Delegated(_shapeless(sort(input.reshape(1), 0, bool(descending))))
    return input, dim, bool(descending)


@composite("input, dim, descending", rule=_canonical_sort, outputs=results.sort)
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = False
) -> results.sort:
    """Return the elements sorted along `dim`, and where they stood before.

    NaN counts as the largest.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one.
    dim : int
        The dimension to sort along.
    descending : bool
        Whether the largest comes first.
    stable : bool, optional
        Whether equal elements keep their order; here they always do.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> values, indices = tp.sort(tp.tensor([3, 1, 2]))
    >>> values
    tensor([1, 2, 3])
    """
    order = argsort(input, dim, descending)
    return results.sort(input.gather(dim, order), order)


@composite()
def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.msort(tp.tensor([[2, 1], [1, 2]]))
    tensor([[1, 1],
            [2, 2]])
    """
    return sort(input, 0)[0]


def _canonical_topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    _refuse_complex(input, "topk")
    dim = normalize_dim(dim, len(input._shape), "topk")
    size = input._shape[dim] if input._shape else 1
    if not 0 <= k <= size:
        raise RuntimeError(
            f"topk(): selected index k out of range: k is {k}, dimension {dim} has size {size}"
        )
    if not input._shape:
        if k == 0:
            raise RuntimeError("topk(): k must be 1 for a 0-d tensor, got 0")
        return Delegated(_shapeless(topk(input.reshape(1), k, 0, bool(largest))))
    return input, int(k), dim, bool(largest)


@composite("input, k, dim, largest", rule=_canonical_topk, outputs=results.topk)
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> results.topk:
    """Return the `k` largest elements along `dim` and where they are.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one; NaN counts as the largest.
    k : int
        How many.
    dim : int
        The dimension to select along.
    largest : bool
        False for the smallest instead.
    sorted : bool
        Whether the best must come first; here it always does.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Raises
    ------
    RuntimeError
        If the dimension has fewer than `k` elements.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.topk(tp.tensor([1, 4, 3, 2]), 2).values
    tensor([4, 3])
    """
    indices = argsort(input, dim, largest).narrow(dim, 0, k).contiguous()
    return results.topk(input.gather(dim, indices), indices)


def _prepare(name: str, input: Tensor, dim: int) -> int:
    check_tensor(input, name)
    dim = normalize_dim(dim, len(input._shape), name)
    if input._shape:
        check_not_empty(input, (dim,), name)
    refuse_complex(input, name)
    return dim


def _canonical_kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    dim = _prepare("kthvalue", input, dim)
    size = input._shape[dim] if input._shape else 1
    if not 1 <= k <= size:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}, the size "
            f"{size}"
        )
    if not input._shape:
        return Delegated(_shapeless(kthvalue(input.reshape(1), k, 0)))
    return input, int(k), dim, bool(keepdim)


@composite(rule=_canonical_kthvalue, outputs=results.kthvalue)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> results.kthvalue:
    """Return the `k`-th smallest element along `dim`, counted from 1, and where it is.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.kthvalue(tp.tensor([5, 3, 4]), 2).values
    tensor(4)
    """
    index = argsort(input, dim).narrow(dim, k - 1, 1).contiguous()
    return results.kthvalue(*pick(input, dim, index, keepdim))


def _median_indices(input: Tensor, dim: int, ignore_nan: bool) -> Tensor:
    """Return where the lower median along `dim` is; the dimension stays."""
    order = argsort(input, dim)
    size = input._shape[dim]
    middle = (size - 1) // 2
    if input.dtype.category != FLOATING:
        return order.narrow(dim, middle, 1)
    numbers = sum(input == input, dim, True)
    if ignore_nan:
        index = ((numbers - 1) // 2).clamp(min=0)
    else:
        # The first NaN stands right behind the numbers.
        index = _WHERE.call(numbers == size, middle, numbers)
    return order.gather(dim, index)


def _canonical_median(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is not None:
        dim = _prepare(name, input, dim)
        if not input._shape:
            op = median if name == "median" else nanmedian
            return Delegated(_shapeless(op(input.reshape(1), 0)))
        return input, dim, bool(keepdim)
    check_tensor(input, name)
    refuse_complex(input, name)
    if keepdim:
        raise TypeError(f"{name}(): keepdim needs a dim")
    if 0 in input._shape:
        if input.dtype.category != FLOATING:
            raise RuntimeError(f"{name}(): expected an element, got shape {list(input._shape)}")
        return Delegated(input.sum() / 0)
    return Delegated.to(median_all, input, name == "nanmedian")


@composite(method=False)
def median_all(input: Tensor, ignore_nan: bool) -> Tensor:
    """Return the lower median of all elements; equal ones share its gradient.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.median_all(tp.tensor([4, 1, 3, 2]), False)
    tensor(2)
    """
    flat = input.reshape(-1)
    return flat.gather(0, _median_indices(flat, 0, ignore_nan)).reshape(())


def _canonical_median_of(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _canonical_median("median", input, dim, keepdim)


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> results.median: ...
@composite(
    rule=_canonical_median_of,
    outputs=results.median,
    delegates="median_all that of all elements",
)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of all elements, or the medians along `dim` and where they are.

    Of an even number of elements the lower of the two in the middle counts. NaN wins over all.

    Returns
    -------
    Tensor or named tuple (values, indices)
        A tuple where `dim` is given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.median(tp.tensor([4, 1, 3, 2]))
    tensor(2)
    """
    assert dim is not None
    indices = _median_indices(input.detach(), dim, False)
    return results.median(*pick(input, dim, indices, keepdim))


def _canonical_nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _canonical_median("nanmedian", input, dim, keepdim)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> results.nanmedian: ...
@composite(
    rule=_canonical_nanmedian,
    outputs=results.nanmedian,
    delegates="median_all that of all elements",
)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN; else like :func:`median`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nanmedian(tp.tensor([4.0, float("nan"), 3.0]))
    tensor(3.)
    """
    assert dim is not None
    indices = _median_indices(input.detach(), dim, True)
    return results.nanmedian(*pick(input, dim, indices, keepdim))


def _canonical_mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    dim = _prepare("mode", input, dim)
    if not input._shape:
        return Delegated(_shapeless(mode(input.reshape(1), 0)))
    return input, dim, bool(keepdim)


@composite(rule=_canonical_mode, outputs=results.mode)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> results.mode:
    """Return the most frequent element along `dim`, the smallest of several, and where it is last.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mode(tp.tensor([2, 1, 2, 3]))
    tensorplug.return_types.mode(
    values=tensor(2),
    indices=tensor(2))
    """
    order = argsort(input, dim)
    size = input._shape[dim]
    ordered = input.detach().gather(dim, order)
    shape = [1] * len(input._shape)
    shape[dim] = size
    indices = _ARANGE.call(size, device=input.device).reshape(shape)
    # The length so far of the run of equal elements that each one stands in.
    starts = ordered.narrow(dim, 1, size - 1) != ordered.narrow(dim, 0, size - 1)
    run_starts = indices.narrow(dim, 1, size - 1) * starts
    run_starts = _CAT.call([order.narrow(dim, 0, 1) * 0, run_starts], dim)
    lengths = indices - cummax(run_starts, dim)[0]
    # The first of the greatest is the end of the first of the longest runs.
    last = order.gather(dim, argmax(lengths, dim, True))
    return results.mode(*pick(input, dim, last, keepdim))


@primitive("input")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero, in the order of the elements.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    as_tuple : bool
        Return one 1-d tensor per dimension, fit for indexing, instead of a row per element.

    Returns
    -------
    Tensor or tuple of Tensor
        int64, of shape (number of elements found, number of dimensions).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nonzero(tp.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    check_tensor(input, "nonzero")
    if not as_tuple:
        return Spec((input,), None, int64)
    # A 0-d tensor counts as having one dimension here, as in torch.
    return Delegated(nonzero(input if input._shape else input.reshape(1)).unbind(1))


@composite()
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the elements that are not zero, one row for each.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.argwhere(tp.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    check_tensor(input, "argwhere")
    return nonzero(input)


def _canonical_nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> tuple[Any, ...]:
    check_tensor(input, "nonzero_static")
    if size < 0:
        raise RuntimeError(f"nonzero_static(): size must be non-negative, got {size}")
    return input, size, fill_value


@composite(rule=_canonical_nonzero_static)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the first `size` rows of :func:`nonzero`, filled up with `fill_value`.

    The shape of the result does not depend on the data.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nonzero_static(tp.tensor([0, 3, 4]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    rows = nonzero(input)
    found = rows.narrow(0, 0, min(size, rows._shape[0]))
    missing = size - found._shape[0]
    fill = _FULL.call((missing, len(input._shape)), fill_value, dtype=int64, device=input.device)
    return _CAT.call([found, fill])


@composite(method=False, outputs="*")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return the index along each dimension, int64, of the elements at flat `indices` of a `shape`.

    An index past the end starts again from the front.

    Raises
    ------
    TypeError
        If the indices are no integers.
    ValueError
        For a negative size.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.unravel_index(tp.tensor([3, 5]), (2, 3))
    (tensor([1, 1]), tensor([0, 2]))
    """
    check_tensor(indices, "unravel_index", "indices")
    if indices.dtype.category != INTEGER:
        raise TypeError(f"unravel_index(): indices must be integers, got {indices.dtype}")
    sizes = as_shape((shape,), "unravel_index")
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index(): sizes must be non-negative, got {list(sizes)}")
    indices = indices.to(int64)
    result: list[Tensor] = []
    for size in reversed(sizes):
        result.insert(0, indices % size)
        indices = indices // size
    return tuple(result)


exact_out(argsort, sort, msort, topk, kthvalue, median, nanmedian, nonzero_static)
exact_out(
    mode,
    said="{name}(): expected scalar type '{kinds[0]}' but got '{kinds[1]}' for {output} output",
)
exact_out(
    nonzero,
    said="{name}: Expected out tensor to have scalar type {kinds[0]} but got scalar type {kinds[1]}",
)
