"""Masked reductions of sparse tensors: over the elements that a mask names, or over those stored."""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import FLOATING, DType, int64
from tensorplug.core.ops import full, unique as unique_values, where
from tensorplug.core.tensor.layout import strided

from .arithmetic import as_coo, like, sparse_mask, unique
from .compressed import CompressedTensor
from .coordinates import CooTensor
from .indexing import _as_index
from .structure import flat_places, places_of


def reduced(
    name: str,
    input: Any,
    dims: tuple[int, ...],
    keepdim: bool,
    dtype: DType | None,
    mask: Any,
    neutral: Any,
) -> Any:
    """Return a masked reduction of a sparse tensor, in its layout.

    Parameters
    ----------
    name : str
        "sum", "prod", "amax", "amin" or "mean".
    input : Tensor
        A sparse tensor.
    dims : tuple of int
        The dimensions to reduce over, none of them negative.
    keepdim : bool
        Keep them, of size 1.
    dtype : DType or None
        Of the result.
    mask : Tensor or None
        Of the shape of `input`, bool; it names the elements that count, also those that are not stored.
    neutral : number
        What counts in place of the others.
    """
    if isinstance(input, CompressedTensor) and not keepdim:
        raise RuntimeError(
            f"masked.{name}(): reduction operations on CSR tensors with keepdim=False is unsupported; pass "
            "keepdim=True"
        )
    places = unique(as_coo(input))
    if dtype is None and name in ("sum", "prod") and input.dtype.category < FLOATING:
        dtype = int64
    given: Any = None
    if mask is not None:
        dense = mask.layout is strided
        given = unique(mask.to_sparse(places.sparse_dim()) if dense else as_coo(mask))
        places = sparse_mask(places, given)
        places = places._with_values(where(given._stored, places._stored, neutral))
    elif name != "sum":
        raise ValueError(
            f"masked {name} expects explicit mask for {input.layout.name} tensor input: without one, it is "
            "open whether what is not stored counts as zero"
        )
    places = places if dtype is None else places.to(dtype)
    if len(set(dims)) == len(places._shape):
        count = given.to(int64)._stored.sum() if name == "mean" else None
        number = _number("sum" if name == "mean" else name, places._stored, neutral)
        number = number if count is None else number / count
        return like(_as_places(number, len(dims) if keepdim else 0), input)
    made = _reduced_places("sum" if name == "mean" else name, places, dims, keepdim, neutral)
    if name == "mean":
        counts = _reduced_places("sum", given.to(int64), dims, keepdim, 0)
        made = made._with_values(made._stored / counts._stored)
    # Where dense dimensions alone are left, they become the sparse ones, as in torch.
    if made.dim() and not made.sparse_dim():
        made = made.to_dense().to_sparse()
    return like(made, input)


def _number(name: str, values: Any, neutral: Any) -> Any:
    """Return the reduction of all values: of none, what is neutral."""
    if values.numel():
        return getattr(values, name)()
    return full((), neutral, dtype=values.dtype, device=values.device)


def _as_places(number: Any, count: int) -> Any:
    """Return a number as a sparse tensor of dimensions of size 1, which stores it unless it is zero."""
    return number.reshape((1,) * count).to_sparse()


def _reduced_places(
    name: str, places: CooTensor, dims: tuple[int, ...], keepdim: bool, neutral: Any
) -> Any:
    sparse = places.sparse_dim()
    values = places._stored
    for d in sorted(dims, reverse=True):
        if d >= sparse:
            values = getattr(values, name)(d - sparse + 1, keepdim)
    left = [d for d in range(sparse) if d not in dims]
    sizes = tuple([places._shape[d] for d in left])
    flat = flat_places(places._where.index_select(0, _as_index(left, places._where)), sizes)
    keys, groups = unique_values(flat, return_inverse=True)
    start = full(
        (keys._shape[0], *values._shape[1:]), neutral, dtype=values.dtype, device=values.device
    )
    if name == "sum":
        values = start.index_add(0, groups, values)
    else:
        values = start.index_reduce(0, groups, values, name)
    indices = places_of(keys, sizes)
    if keepdim:
        indices = places._where.new_zeros((sparse, keys._shape[0])).index_copy(
            0, _as_index(left, places._where), indices
        )
    shape = tuple(
        [1 if d in dims else n for d, n in enumerate(places._shape) if keepdim or d not in dims]
    )
    return CooTensor.of(indices, values, shape, True)
