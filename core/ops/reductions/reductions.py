"""Reductions over dimensions: sums, products, extrema, truth values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    FLOATS,
    INTEGER,
    DType,
    as_dtype,
    bool_,
    int64,
    scalar_type,
    uint8,
)
from ...dispatch.op_registry import Delegated, Spec, composite, primitive
from ...dispatch.out_dtypes import computes_in_out, exact_out
from ...errors import check_flag
from ...tensor.shapes import Shape, normalize_dim, normalize_dims, reduced_shape
from .. import results
from ..rules import cast, check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "mean", "nanmean",
    "nansum", "prod", "sum",
]  # fmt: skip

Dims = int | Sequence[int] | None


def summed_dtype(input: Tensor, dtype: DType | None) -> DType:
    """Return the dtype in which sums and products are computed: int64 for integers and bool."""
    if dtype is not None:
        return as_dtype(dtype)
    return int64 if input.dtype.category <= INTEGER else input.dtype


def refuse_complex(input: Tensor, name: str) -> None:
    """Raise NotImplementedError, as torch does, where complex numbers have no order."""
    if input.dtype.category == COMPLEX:
        raise NotImplementedError(
            f"{name}(): complex numbers have no order, got {input.dtype}; compare .abs() or .real"
        )


def check_not_empty(input: Tensor, dims: Shape, name: str) -> None:
    """Raise IndexError if a reduction that has no identity meets a dimension of size 0."""
    for dim in dims:
        if input._shape[dim] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {dim} to have non-zero size, got shape "
                f"{list(input._shape)}"
            )


def dims_with_elements(input: Tensor, dim: Dims, name: str) -> Shape:
    """Return the dimensions of a reduction that has no identity.

    Raises
    ------
    IndexError, RuntimeError
        If there is no element to reduce, along one of them or at all.
    """
    dims = normalize_dims(dim, len(input._shape), name)
    if 0 in input._shape and (dim is None or dim == () or dim == []):
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            f"reduction dim with the 'dim' argument; got shape {list(input._shape)}"
        )
    check_not_empty(input, dims, name)
    return dims


@primitive("input, dim, keepdim")
def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Spec:
    """Return the sum of the elements over the dimensions `dim`, or over all of them.

    Parameters
    ----------
    input : Tensor
        Any dtype; integers and bool are summed in int64.
    dim : int or sequence of int, optional
        The dimensions to reduce.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    dtype : DType, optional
        Convert to this dtype before summing.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sum(tp.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    check_tensor(input, "sum")
    check_flag(keepdim, "sum")
    dims = normalize_dims(dim, len(input._shape), "sum")
    dtype = summed_dtype(input, dtype)
    input = cast(input, dtype)
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), dtype)


def _canonical_nansum(
    input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    check_tensor(input, "nansum")
    dims = normalize_dims(dim, len(input._shape), "nansum")
    if input.dtype.category == COMPLEX:
        raise RuntimeError(f"nansum(): does not support complex inputs, got {input.dtype}")
    if input.dtype.category != FLOATING:
        return Delegated(sum(input, dim, keepdim, dtype=dtype))
    if dtype is not None:
        return Delegated(sum(input.masked_fill(input != input, 0), dim, keepdim, dtype=dtype))
    check_flag(keepdim, "nansum")
    return input, dims, keepdim


@composite("input, dim, keepdim", rule=_canonical_nansum)
def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the sum over `dim`, or over all dimensions, with NaN counting as zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nansum(tp.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    return sum(input.masked_fill(input != input, 0), dim, keepdim)


@primitive("input, dim, keepdim")
def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Spec:
    """Return the mean of the elements over the dimensions `dim`, or over all of them.

    Parameters
    ----------
    input : Tensor
        Of a floating-point or complex dtype, unless `dtype` names one.
    dim : int or sequence of int, optional
        The dimensions to reduce.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    dtype : DType, optional
        Convert to this dtype first.

    Raises
    ------
    RuntimeError
        For integers and bool, whose mean would need another dtype.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.mean(tp.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([2., 3.])
    """
    check_tensor(input, "mean")
    check_flag(keepdim, "mean")
    chosen = input.dtype if dtype is None else as_dtype(dtype)
    if chosen.category < FLOATING:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            f"dtype must be either a floating point or complex dtype. Got: "
            f"{scalar_type(chosen)}; pass dtype=tp.float32"
        )
    dims = normalize_dims(dim, len(input._shape), "mean")
    input = cast(input, chosen)
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), chosen)


def _canonical_nanmean(
    input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Any:
    check_tensor(input, "nanmean")
    if input.dtype.category < FLOATING:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype}"
        )
    if dtype is not None and as_dtype(dtype).category < FLOATING:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point "
            f"or complex dtype. Got: {scalar_type(as_dtype(dtype))}; pass dtype=tp.float32"
        )
    if input.dtype.category == FLOATING and dtype is None:
        check_flag(keepdim, "nanmean")
        return input, normalize_dims(dim, len(input._shape), "nanmean"), keepdim
    count = sum(input == input, dim, keepdim)
    return Delegated(nansum(input, dim, keepdim, dtype=dtype) / count)


@composite("input, dim, keepdim", rule=_canonical_nanmean)
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the mean over `dim`, or over all dimensions, of the elements that are not NaN.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nanmean(tp.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    return nansum(input, dim, keepdim) / sum(input == input, dim, keepdim)


@primitive("input, dim, keepdim")
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Spec:
    """Return the product of the elements over one dimension, or over all of them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.prod(tp.tensor([[1, 2], [3, 4]]), dim=1)
    tensor([ 2, 12])
    """
    check_tensor(input, "prod")
    check_flag(keepdim, "prod")
    if dim is not None:
        dim = normalize_dim(dim, len(input._shape), "prod")
    dims = normalize_dims(dim, len(input._shape), "prod")
    dtype = summed_dtype(input, dtype)
    input = cast(input, dtype)
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), dtype)


# --- truth values -----------------------------------------------------------------------------


def _truth(name: str, input: Tensor, dim: Dims, keepdim: bool) -> Spec:
    check_tensor(input, name)
    check_flag(keepdim, name)
    dims = normalize_dims(dim, len(input._shape), name, empty_is_all=False)
    dtype = uint8 if input.dtype is uint8 else bool_  # torch keeps its old truth values in uint8
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), dtype)


@primitive("input, dim, keepdim")
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Spec:
    """Return whether any element over the dimensions `dim`, or over all of them, is not zero.

    Returns
    -------
    Tensor
        bool; uint8 for a uint8 input.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.any(tp.tensor([[False, True], [False, False]]), dim=1)
    tensor([ True, False])
    """
    return _truth("any", input, dim, keepdim)


@primitive("input, dim, keepdim")
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Spec:
    """Return whether every element over the dimensions `dim`, or over all of them, is not zero.

    Returns
    -------
    Tensor
        bool; uint8 for a uint8 input.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.all(tp.tensor([[True, True], [True, False]]), dim=1)
    tensor([ True, False])
    """
    return _truth("all", input, dim, keepdim)


def _canonical_count_nonzero(input: Any, dim: Any = None, *others: int) -> Any:
    check_tensor(input, "count_nonzero")
    if others:
        dim = (dim, *others)
    return input, normalize_dims(dim, len(input._shape), "count_nonzero")


@composite("input, dim", rule=_canonical_count_nonzero)
def count_nonzero(input: Tensor, dim: Dims = None, *others: int) -> Tensor:
    """Return how many elements over the dimensions `dim`, or over all of them, are not zero.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.count_nonzero(tp.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    return sum(input != 0, dim)


# --- extrema ----------------------------------------------------------------------------------


def _extreme(name: str, input: Tensor, dim: Dims, keepdim: bool) -> Spec:
    check_tensor(input, name)
    check_flag(keepdim, name)
    dims = dims_with_elements(input, dim, name)
    refuse_complex(input, name)
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), input.dtype)


@primitive("input, dim, keepdim")
def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Spec:
    """Return the largest element over the dimensions `dim`, or over all of them.

    NaN wins over every number. Elements that share the maximum share its gradient equally.

    Raises
    ------
    IndexError, RuntimeError
        If there is no element to reduce.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.amax(tp.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    tensor([5., 3.])
    """
    return _extreme("amax", input, dim, keepdim)


@primitive("input, dim, keepdim")
def amin(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Spec:
    """Return the smallest element over the dimensions `dim`, or over all of them.

    NaN wins over every number. Elements that share the minimum share its gradient equally.

    Raises
    ------
    IndexError, RuntimeError
        If there is no element to reduce.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.amin(tp.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    tensor([1., 2.])
    """
    return _extreme("amin", input, dim, keepdim)


def _canonical_aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    check_tensor(input, "aminmax")
    ndim = len(input._shape)
    if dim is None:
        if 0 in input._shape:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                f"identity; got shape {list(input._shape)}"
            )
    else:
        dim = normalize_dim(dim, ndim, "aminmax")
        if ndim:
            check_not_empty(input, (dim,), "aminmax")
        else:
            dim = None
    refuse_complex(input, "aminmax")
    check_flag(keepdim, "aminmax")
    return input, dim, keepdim


@composite(rule=_canonical_aminmax, outputs=results.aminmax)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> results.aminmax:
    """Return the smallest and the largest element over one dimension, or over all of them.

    Returns
    -------
    (min, max) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.aminmax(tp.tensor([1, -3, 5])).min
    tensor(-3)
    """
    dims: Any = tuple(range(len(input._shape))) if dim is None else dim
    return results.aminmax(amin(input, dims, keepdim), amax(input, dims, keepdim))


def _position(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Spec:
    check_tensor(input, name)
    check_flag(keepdim, name)
    if input.dtype.category in (BOOL, COMPLEX):
        raise RuntimeError(
            f"{name}(): does not support {'bool' if input.dtype is bool_ else 'complex'} input, "
            f"got {input.dtype}; convert it first"
        )
    if dim is None:
        if 0 in input._shape:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0, got "
                f"shape {list(input._shape)}"
            )
        shape: Shape = (1,) * len(input._shape) if keepdim else ()
    else:
        dim = normalize_dim(dim, len(input._shape), name)
        if input._shape:
            check_not_empty(input, (dim,), name)
        shape = reduced_shape(input._shape, (dim,), keepdim)
    return Spec((input, dim, keepdim), shape, int64)


@primitive("input, dim, keepdim")
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Spec:
    """Return where along `dim`, or in the flattened input, the first of the largest elements is.

    NaN counts as larger than every number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.argmax(tp.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    tensor([1, 0])
    """
    return _position("argmax", input, dim, keepdim)


@primitive("input, dim, keepdim")
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Spec:
    """Return where along `dim`, or in the flattened input, the first of the smallest elements is.

    NaN counts as smaller than every number.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.argmin(tp.tensor([[1.0, 5.0], [3.0, 2.0]]), dim=1)
    tensor([0, 1])
    """
    return _position("argmin", input, dim, keepdim)


computes_in_out(sum)
computes_in_out(prod)


exact_out(argmax, argmin, aminmax, amax, amin)
exact_out(nanmean, others=FLOATS)
exact_out(
    any,
    all,
    others=(uint8, bool_),
    said="{name} only supports bool tensor for result, got: {kinds[1]}",
)
