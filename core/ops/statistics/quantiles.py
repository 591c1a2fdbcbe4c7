"""Quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import DType, float32, float64, int64
from ...dispatch.op_registry import composite, handle
from ...dispatch.out_dtypes import exact_out
from ...tensor.base import TensorBase
from ...tensor.shapes import normalize_dim
from ..reductions.reductions import all, sum
from ..rules import cast, check_tensor
from ..sorting.sorting import sort

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["nanquantile", "quantile"]

_FULL = handle("full")
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _probabilities(name: str, q: Any, input: Tensor) -> Tensor:
    """Return `q` as a tensor, checked."""
    if not isinstance(q, TensorBase):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return _FULL.call((), q, dtype=input.dtype, device=input.device)
    if len(q._shape) > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got shape {list(q._shape)}")
    if q._key.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}() q tensor must be same dtype as the input tensor, got {q._key.dtype} and "
            f"{input.dtype}"
        )
    tensor: Tensor = q  # type: ignore[assignment]
    # Of all samples of a vmap at once there is no telling.
    if not (tensor.is_meta or tensor._batched) and not all((tensor >= 0) & (tensor <= 1)).item():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1], got {q!r}")
    return tensor


def _canonical(
    name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> tuple[Tensor, Tensor, int | None, bool, str]:
    check_tensor(input, name)
    if input.dtype not in (float32, float64):
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype, got {input.dtype}"
        )
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if 0 in input._shape:
        raise RuntimeError(
            f"{name}() input tensor must be non-empty, got shape {list(input._shape)}"
        )
    ndim = len(input._shape)
    if dim is not None:
        dim = normalize_dim(dim, ndim, name)
    if not ndim:
        dim = None
    levels = _probabilities(name, q, input)
    if levels is q:  # another tensor: of other levels the checks say nothing
        levels = levels.view(levels._shape)
    return input, levels, dim, bool(keepdim), interpolation


def _quantile(
    input: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Tensor:
    ndim = len(input._shape)
    if dim is None:
        rows = input.reshape(-1)
        kept: tuple[int, ...] = (1,) * ndim if keepdim else ()
    else:
        rows = input.movedim(dim, -1)
        kept = (
            tuple([1 if d == dim else n for d, n in enumerate(input._shape)])
            if keepdim
            else rows._shape[:-1]
        )
    found = _along_last(rows, q.reshape(-1), ignore_nan, interpolation).movedim(-1, 0)
    return found.reshape((*q._shape, *kept)) if q._shape else found.reshape(kept)


def _along_last(rows: Tensor, levels: Tensor, ignore_nan: bool, interpolation: str) -> Tensor:
    """Return the quantiles at 1-d `levels` along the last dimension, which becomes that of the levels."""
    size = rows._shape[-1]
    ordered = sort(rows, -1)[0]
    numbers = sum(rows == rows, -1, True)
    if ignore_nan:
        # Without a number the index is the first one, where NaN stands.
        last = (numbers - 1).clamp(min=0)
        indices = levels * cast(last, rows.dtype)
    else:
        # A NaN stands last: the index of a row that has one is there.
        last = numbers * 0 + (size - 1)
        indices = levels * cast(last, rows.dtype)
        indices = indices.masked_fill(numbers < size, float(size - 1))
    return _interpolated(ordered, indices, interpolation, rows.dtype)


def _interpolated(ordered: Tensor, indices: Tensor, interpolation: str, dtype: DType) -> Tensor:
    """Return the elements at fractional indices along the last dimension."""
    indices = indices.detach() if interpolation in ("lower", "higher", "nearest") else indices
    if interpolation == "nearest":
        return ordered.gather(-1, cast(indices.round(), int64))
    if interpolation == "higher":
        return ordered.gather(-1, cast(indices.ceil(), int64))
    floor = indices.detach().floor()
    lower = ordered.gather(-1, cast(floor, int64))
    if interpolation == "lower":
        return lower
    upper = ordered.gather(-1, cast(indices.detach().ceil(), int64))
    if interpolation == "midpoint":
        weight: Any = cast(floor != indices, dtype) * 0.5
    else:
        weight = indices - floor
    return lower.lerp(upper, weight)


def _canonical_quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    return _canonical("quantile", input, q, dim, keepdim, interpolation)


@composite(rule=_canonical_quantile)
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the value below which a share `q` of the elements lies, along `dim` or of all.

    Parameters
    ----------
    input : Tensor
        float32 or float64.
    q : float or Tensor
        Between 0 and 1; several in one dimension, which then comes first in the result.
    dim : int, optional
        The dimension to reduce.
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What lies between two elements.

    Notes
    -----
    A row with a NaN has NaN for every quantile; :func:`nanquantile` leaves NaN out.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.quantile(tp.tensor([1.0, 2.0, 3.0, 4.0]), 0.25)
    tensor(1.7500)
    """
    return _quantile(input, q, dim, keepdim, interpolation, False)


def _canonical_nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    return _canonical("nanquantile", input, q, dim, keepdim, interpolation)


@composite(rule=_canonical_nanquantile)
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return :func:`quantile` of the elements that are not NaN.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.nanquantile(tp.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile(input, q, dim, keepdim, interpolation, True)


exact_out(
    quantile,
    nanquantile,
    said="{name}() out tensor must be same dtype as the input tensor, {0.name}, got {1.name}",
)
