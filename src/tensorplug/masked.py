"""Reductions and normalisations of the elements where a mask is True, under the names of ``torch.masked``.

A masked-out element counts as the neutral one of the operation: what is summed up is 0 there. A mask is
broadcast to the input's shape; without one, all elements count. Derivatives are zero where the mask is False.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.device.dtypes import BOOL, FLOATING, DType, bool_, float32, iinfo, int64
from tensorplug.core.ops.linalg.namespace import vector_norm
from tensorplug.core.ops.rules import check_tensor
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.shapes import normalize_dim, normalize_dims

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None


def _dims(input: Any, dim: Dims, name: str) -> tuple[int, ...]:
    """Return the dimensions to reduce over; all of them for None and ``()``."""
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    return normalize_dims(dim, input.ndim, f"masked.{name}")


def _mask_of(input: Any, mask: Any) -> Any:
    """Return the mask, of the shape of the input."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "expected a mask that broadcasts to the input: mask dimensionality higher than of the input, "
            f"{list(mask.shape)} for {list(input.shape)}"
        )
    if mask.layout is not strided and input.layout is strided:
        mask = mask.to_dense()
    return mask.to(bool_).expand(input.shape)


def _lowest(input: Any, name: str, sign: int = -1) -> float:
    """Return what no element is below, or with `sign` 1 above."""
    dtype = input.dtype
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return sign * math.inf
    if dtype.is_complex or dtype.category == BOOL:
        raise NotImplementedError(f"masked.{name}(): identity of {name} on {dtype} input")
    limits = iinfo(dtype)
    return limits.min if sign < 0 else limits.max


#: What leaves a result as it is, by operation; where it is missing, what no element is below, or above.
_NEUTRAL = {"sum": 0, "cumsum": 0, "normalize": 0, "prod": 1, "cumprod": 1, "median": math.nan}


def _neutral(name: str, input: Any, ord: float = 2) -> float:
    if name == "norm":
        return math.inf if ord == -math.inf else 0
    found = _NEUTRAL.get(name)
    if found is None:
        found = _lowest(input, name, 1 if name in ("amin", "argmin") else -1)
    return found


def reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """Return the neutral element of an operation here, as a tensor, or None for those that have none."""
    name = op_name.rpartition(".")[2]
    if name in ("mean", "var", "std"):
        return None
    if name not in __all__ or "softm" in name:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    dtype = float32 if name == "median" and not input.dtype.is_floating_point else input.dtype
    return ops.full((), _neutral(name, input, *args), dtype=dtype, device=input.device)


def _filled(input: Any, mask: Any, name: str, *args: Any) -> Any:
    """Return the input with the neutral element where the mask is False."""
    check_tensor(input, f"masked.{name}")
    if mask is None:
        return input
    neutral = ops.full_like(input, _neutral(name, input, *args))
    return ops.where(_mask_of(input, mask), input, neutral)


def _is_sparse(input: Any, name: str) -> bool:
    check_tensor(input, f"masked.{name}")
    return input.layout is not strided


def _sparse(
    name: str, input: Any, dim: Dims, keepdim: bool, dtype: DType | None, mask: Any
) -> Tensor:
    """Return a reduction of a sparse tensor, in its layout; without a mask of what is stored."""
    from tensorplug.sparse.masked import reduced  # of use with sparse tensors only

    if mask is not None:
        fits = mask.layout is not strided and mask.shape == input.shape
        mask = mask.to(bool_) if fits else _mask_of(input, mask.to_dense())
    dims, neutral = _dims(input, dim, name), _neutral("sum" if name == "mean" else name, input)
    found: Tensor = reduced(name, input, dims, keepdim, dtype, mask, neutral)
    return found


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the sum of the elements where the mask is True; 0 where there are none.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int or sequence of int, optional
        The dimensions to reduce over; by default, and for ``()``, all.
    keepdim : bool
        Keep the dimensions, of size 1.
    dtype : DType, optional
        Of the result; by default as `input` (int64 for integers).
    mask : Tensor, optional
        Bool; it broadcasts to the shape of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x, mask = tp.tensor([[1.0, 2.0], [3.0, 4.0]]), tp.tensor([[True, False], [False, False]])
    >>> tp.masked.sum(x, 1, mask=mask)
    tensor([1., 0.])
    """
    if _is_sparse(input, "sum"):
        return _sparse("sum", input, dim, keepdim, dtype, mask)
    input = _filled(input, mask, "sum")
    return ops.sum(input, _dims(input, dim, "sum"), keepdim, dtype=dtype)


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the product of the elements where the mask is True; 1 where there are none."""
    if _is_sparse(input, "prod"):
        return _sparse("prod", input, dim, keepdim, dtype, mask)
    result: Any = _filled(input, mask, "prod")
    if dtype is None and input.dtype.category < FLOATING:
        dtype = int64
    none = isinstance(dim, list) and not dim  # as torch, whose other reductions take [] as ()
    dims = () if none else _dims(input, dim, "prod")
    if not (none or input.ndim):
        return ops.prod(result, dtype=dtype)
    for d in sorted(dims, reverse=True):
        result = ops.prod(result, d, keepdim, dtype=dtype)
    return result if dtype is None else result.to(dtype)


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the largest of the elements where the mask is True; the dtype's lowest where there are none."""
    if _is_sparse(input, "amax"):
        return _sparse("amax", input, dim, keepdim, dtype, mask)
    input = _filled(input, mask, "amax")
    return ops.amax(input, _dims(input, dim, "amax"), keepdim).to(dtype or input.dtype)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the smallest of the elements where the mask is True; its dtype's highest if none is."""
    if _is_sparse(input, "amin"):
        return _sparse("amin", input, dim, keepdim, dtype, mask)
    input = _filled(input, mask, "amin")
    return ops.amin(input, _dims(input, dim, "amin"), keepdim).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return where the largest of the elements is, in the dtype of `input` or the one given."""
    filled = _filled(input, mask, "argmax")
    return ops.argmax(filled, dim, keepdim).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return where the smallest of the elements is, in the dtype of `input` or the one given."""
    filled = _filled(input, mask, "argmin")
    return ops.argmin(filled, dim, keepdim).to(dtype or input.dtype)


def _count(input: Any, dim: Dims, keepdim: bool, mask: Any) -> Any:
    counted = ops.ones(input.shape, dtype=int64, device=input.device)
    return sum(counted, dim, keepdim=keepdim, mask=mask)


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the mean of the elements where the mask is True; NaN where there are none.

    Raises
    ------
    ValueError
        If neither `dtype` nor that of `input` is floating-point or complex.
    """
    check_tensor(input, "masked.mean")
    found = dtype or input.dtype
    if not found.is_floating_point and not found.is_complex:
        raise ValueError(
            "masked.mean(): Could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {found}"
        )
    if _is_sparse(input, "mean"):
        return _sparse("mean", input, dim, keepdim, found, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=found, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the lower median of the elements where the mask is True; NaN where there are none.

    Raises
    ------
    ValueError
        If there are none, and the dtype has no NaN.
    """
    check_tensor(input, "masked.median")
    floating = input.dtype.is_floating_point
    numbers: Any = input if floating else input.to(float32)
    numbers = _filled(numbers, mask, "median")
    found: Any = ops.nanmedian(numbers, normalize_dim(dim, input.ndim, "masked.median"), keepdim)
    if floating:
        return found.values
    if ops.isnan(found.values).any():
        raise ValueError(
            "masked.median(): masked median expects no fully masked out rows if dtype is not floating point"
        )
    return found.values.to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norm of the elements where the mask is True."""
    input = _filled(input, mask, "norm", ord)
    found: Tensor = vector_norm(input, ord, _dims(input, dim, "norm"), keepdim, dtype=dtype)
    return found


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the elements divided by their norm, at least `eps`; 0 where the mask is False."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, "normalize") / size.clamp(min=eps)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the logarithm of the sum of ``exp`` of the elements where the mask is True."""
    filled = _filled(input, mask, "logsumexp")
    found: Any = ops.logsumexp(filled, _dims(input, dim, "logsumexp"), keepdim)
    return found.to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return ``log(exp(input) + exp(other))``; what is masked out adds nothing."""
    left = _filled(input, input_mask, "logaddexp")
    right = _filled(other, other_mask, "logaddexp")
    return ops.logaddexp(left, right).to(dtype or input.dtype)


def _std_var(
    name: str,
    input: Any,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: DType | None,
    mask: Any,
) -> Any:
    check_tensor(input, f"masked.{name}")
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    found = dtype or (
        input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else float32
    )
    total = sum(input, dim, keepdim=True, dtype=found, mask=mask)
    apart = input - total / _count(input, dim, True, mask)
    squares = sum((apart * apart.conj()).real, dim, keepdim=keepdim, mask=mask)
    count = _count(input, dim, keepdim, mask).to(squares.dtype) - correction
    result = (squares / count.clamp(min=0)).to(found)
    return result.sqrt() if name == "std" else result


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the elements where the mask is True, by default with Bessel's correction."""
    return _std_var("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation of the elements where the mask is True; see :func:`var`."""
    return _std_var("std", input, dim, unbiased, correction, keepdim, dtype, mask)


def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the sums of all elements up to each, of those where the mask is True."""
    filled = _filled(input, mask, "cumsum")
    return ops.cumsum(filled, dim, dtype=dtype or input.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the products of all elements up to each, of those where the mask is True."""
    filled = _filled(input, mask, "cumprod")
    return ops.cumprod(filled, dim, dtype=dtype or input.dtype)


def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the softmax of the elements where the mask is True, 0 elsewhere; NaN where there are none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.masked.softmax(tp.zeros(4), 0, mask=tp.tensor([True, False, False, True]))
    tensor([0.5000, 0.0000, 0.0000, 0.5000])
    """
    return ops.softmax(_lowest_where_masked(input, dtype, mask, "softmax"), dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of :func:`softmax`."""
    return ops.log_softmax(_lowest_where_masked(input, dtype, mask, "log_softmax"), dim)


def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the softmax of the negated elements where the mask is True."""
    check_tensor(input, "masked.softmin")
    return ops.softmax(_lowest_where_masked(-input, dtype, mask, "softmin"), dim)


def _lowest_where_masked(input: Any, dtype: DType | None, mask: Any, name: str) -> Any:
    check_tensor(input, f"masked.{name}")
    numbers = input if dtype is None else input.to(dtype)  # first: integers have no -inf
    return _filled(numbers, mask, name)
