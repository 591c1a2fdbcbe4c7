"""Cumulative sums, products, extrema and log-sum-exps along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.dtypes import FLOATING, DType, bool_
from ..dispatch.op_registry import Spec, composite, handle, primitive
from ..dispatch.out_dtypes import computes_in_out, exact_out
from ..tensor.shapes import normalize_dim
from . import results
from .creation.creation import fill_new
from .reductions.reductions import refuse_complex, summed_dtype
from .rules import cast, check_tensor, in_float32

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]

_ARANGE = handle("arange")
_CAT = handle("cat")
_MAXIMUM = handle("maximum")


def _accumulated(input: Tensor, dtype: DType | None, name: str) -> Tensor:
    """Return the input in the dtype that is accumulated in, which bool is not."""
    dtype = summed_dtype(input, dtype)
    if dtype is bool_:
        raise NotImplementedError(
            f"{name}(): not implemented for bool, which has no running totals"
        )
    return cast(input, dtype)


@primitive("input, dim", inplace=True)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Spec:
    """Return the sums of each element and all before it along `dim`.

    Parameters
    ----------
    input : Tensor
        Any dtype; integers and bool are summed in int64.
    dim : int
        The dimension to go along.
    dtype : DType, optional
        Convert to this dtype first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cumsum(tp.tensor([1, 2, 3]), dim=0)
    tensor([1, 3, 6])
    """
    check_tensor(input, "cumsum")
    dim = normalize_dim(dim, len(input._shape), "cumsum")
    input = _accumulated(input, dtype, "cumsum")
    return Spec((input, dim), input._shape, input.dtype)


@primitive("input, dim", inplace=True)
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Spec:
    """Return the products of each element and all before it along `dim`.

    Parameters
    ----------
    input : Tensor
        Any dtype; integers and bool are multiplied in int64.
    dim : int
        The dimension to go along.
    dtype : DType, optional
        Convert to this dtype first.

    Notes
    -----
    The derivative is right where elements are zero, to any order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cumprod(tp.tensor([1, 2, 3]), dim=0)
    tensor([1, 2, 6])
    """
    check_tensor(input, "cumprod")
    dim = normalize_dim(dim, len(input._shape), "cumprod")
    input = _accumulated(input, dtype, "cumprod")
    return Spec((input, dim), input._shape, input.dtype)


@primitive("input, dim")
def logcumsumexp(input: Tensor, dim: int) -> Spec:
    """Return the logarithms of the cumulative sums of the exponentials along `dim`.

    Raises
    ------
    NotImplementedError
        For integers and bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logcumsumexp(tp.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
    """
    check_tensor(input, "logcumsumexp")
    dim = normalize_dim(dim, len(input._shape), "logcumsumexp")
    if input.dtype.category < FLOATING:
        raise NotImplementedError(
            f"logcumsumexp(): not implemented for {input.dtype}; convert it to floating point"
        )
    return Spec((input, dim), input._shape, input.dtype)


def _running_maximum(input: Tensor, dim: int) -> Tensor:
    """Return the largest of each element and all before it along `dim`, in log2(size) steps; NaN wins."""
    size = input._shape[dim] if input._shape else 1
    step = 1
    while step < size:
        later = _MAXIMUM.call(
            input.narrow(dim, step, size - step), input.narrow(dim, 0, size - step)
        )
        input = _CAT.call([input.narrow(dim, 0, step), later], dim)
        step *= 2
    return input


def _last_places(input: Tensor, extremes: Tensor, dim: int) -> Tensor:
    """Return where each running extreme was last met, which is where its gradient goes."""
    size = input._shape[dim] if input._shape else 1
    shape = [1] * len(input._shape)
    if shape:
        shape[dim] = size
    indices = _ARANGE.call(size, device=input.device).reshape(shape)
    met = input == extremes
    if input.dtype.category >= FLOATING:
        met = met | (input != input)
    return _running_maximum(indices * met, dim)


def _canonical_cummax(input: Any, dim: int) -> tuple[Tensor, int]:
    check_tensor(input, "cummax")
    dim = normalize_dim(dim, len(input._shape), "cummax")
    refuse_complex(input, "cummax")
    return input, dim


@composite(rule=_canonical_cummax, outputs=results.cummax)
def cummax(input: Tensor, dim: int) -> results.cummax:
    """Return the largest of each element and all before it along `dim`, and its place.

    Of equal elements the last counts; NaN wins over every number.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cummax(tp.tensor([1, 3, 2]), dim=0).values
    tensor([1, 3, 3])
    """
    plain = input.detach()
    indices = _last_places(plain, _running_maximum(plain, dim), dim)
    return results.cummax(input.gather(dim, indices), indices)


def _canonical_cummin(input: Any, dim: int) -> tuple[Tensor, int]:
    check_tensor(input, "cummin")
    dim = normalize_dim(dim, len(input._shape), "cummin")
    refuse_complex(input, "cummin")
    return input, dim


@composite(rule=_canonical_cummin, outputs=results.cummin)
def cummin(input: Tensor, dim: int) -> results.cummin:
    """Return the smallest of each element and all before it along `dim`, and its place.

    Of equal elements the last counts; NaN wins over every number.

    Returns
    -------
    (values, indices) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cummin(tp.tensor([2, 1, 3]), dim=0).values
    tensor([2, 1, 1])
    """
    # The order turned around: bits of integers and bool are inverted, as -x has no place for the
    # least.
    plain = input.detach()
    mirror = -plain if input.dtype.category == FLOATING else ~plain
    indices = _last_places(mirror, _running_maximum(mirror, dim), dim)
    return results.cummin(input.gather(dim, indices), indices)


def _canonical_cumprod_backward(
    grad: Any, input: Any, dim: int, output: Any
) -> tuple[Tensor, Tensor, int, Tensor]:
    return grad, input, normalize_dim(dim, len(input._shape), "cumprod_backward"), output


@composite(shapes="grad(*S), input(*S), output(*S)", rule=_canonical_cumprod_backward, method=False)
@in_float32
def cumprod_backward(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    """Return the gradient of :func:`cumprod` without a division, so zeros do no harm.

    The gradient of x[i] is the product of what comes before it times s[i], where
    ``s[i] = g[i] + x[i + 1] * s[i + 1]``.
    """
    if not input._shape:
        return grad.clone()
    back = input.transpose(dim, -1)._conj().flip(-1)
    # s, with both read from the end: s[i] = g[i] + factor[i] * s[i - 1]
    s = recurrence(_shifted(back, 1), grad.transpose(dim, -1).flip(-1)).flip(-1)
    before = _shifted(output.transpose(dim, -1)._conj(), 1, 1)
    return (before * s).transpose(dim, -1).contiguous()


def _shifted(rows: Any, step: int, value: int = 0) -> Any:
    """Return `rows` shifted by `step` along the last dimension, with a number moving in."""
    size = rows.shape[-1]
    moved_in = fill_new((*rows.shape[:-1], min(step, size)), value, rows.dtype, rows.device)
    return moved_in if size <= step else _CAT.call([moved_in, rows.narrow(-1, 0, size - step)], -1)


def recurrence(factor: Any, term: Any) -> Any:
    """Return s with ``s[i] = term[i] + factor[i] * s[i - 1]``, in log2(n) whole-array steps."""
    size = term.shape[-1]
    step = 1
    while step < size:
        term = term + factor * _shifted(term, step)
        factor = factor * _shifted(factor, step)
        step *= 2
    return term


computes_in_out(cumsum)
computes_in_out(cumprod)


exact_out(
    logcumsumexp,
    cummax,
    cummin,
    said="{name}(): expected scalar_type {kinds[0]} but found {kinds[1]} for {output}",
)
