"""Reductions of segments, stretches of a dimension that follow each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import FLOATS, Number, bfloat16, float16, float32, int32, int64
from ...device.scalars import fitting
from ...dispatch.op_registry import composite, handle
from ...tensor.shapes import normalize_dim
from ..bitwise import logical_or
from ..comparison import isnan
from ..rules import cast, check_tensor
from .gather import scatter_add, scatter_reduce

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["segment_reduce"]

_ARANGE = handle("arange")
_CAT = handle("cat")
_FULL = handle("full")
_SEARCHSORTED = handle("searchsorted")
_WHERE = handle("where")

#: By reduction, under both of torch's names: the way of scatter_reduce, and what no elements make.
_WAYS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "amax": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "amin": ("amin", math.inf),
}


def _check_places(places: Any, name: str, data: Any, axis: int) -> None:
    """Refuse lengths or offsets that do not go with the data, by dtype and shape."""
    check_tensor(places, "segment_reduce", name)
    if places.dtype not in (int32, int64):
        raise NotImplementedError(
            f"segment_reduce(): {name} must be of int32 or int64, got {places.dtype}; convert with .to()"
        )
    last = len(places._shape) - 1
    if last < 0 or axis != last:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}, of "
            f"{name} of shape {list(places._shape)}"
        )
    if places._shape[:-1] != data._shape[:last]:
        raise RuntimeError(
            f"segment_reduce(): expected {name} of shape {[*data._shape[:last], 'segments']}, got "
            f"{list(places._shape)}"
        )


def _check_values(lengths: Any, size: int) -> None:
    """Refuse segments that do not make up the dimension."""
    if lengths._key.is_meta or not lengths.numel():
        fits = lengths._key.is_meta or not size or not math.prod(lengths._shape[:-1])
    else:
        if lengths.min().item() < 0:
            raise RuntimeError("segment_reduce(): lengths contains negative value!")
        fits = bool((lengths.sum(-1) == size).all().item())
    if not fits:
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            f"data.size(lengths.dim()-1), which is {size}, when !unsafe"
        )


def _canonical(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> tuple[Any, ...]:
    check_tensor(data, "segment_reduce", "data")
    if reduce not in _WAYS:
        raise RuntimeError(
            f"segment_reduce(): reduce must be one of sum, mean, max, min and prod, got {reduce!r}"
        )
    if data.dtype not in FLOATS:
        raise NotImplementedError(
            f"segment_reduce(): not implemented for {data.dtype}; convert it to floating point"
        )
    if initial is not None:
        initial = fitting(initial, data.dtype)
    axis = normalize_dim(axis, len(data._shape), "segment_reduce")
    if indices is not None:
        raise RuntimeError(
            "segment_reduce(): indices based reduction is not supported; give lengths"
        )
    if offsets is not None:
        _check_places(offsets, "offsets", data, axis)
        if not offsets._shape[-1]:
            raise RuntimeError(
                "segment_reduce(): offsets must have one more than there are segments"
            )
        if not unsafe and not offsets._key.is_meta and (offsets.diff() < 0).any().item():
            raise RuntimeError("segment_reduce(): offsets must not decrease")
        return data, reduce, offsets, axis, initial
    if lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    _check_places(lengths, "lengths", data, axis)
    if not unsafe:
        _check_values(lengths, data._shape[axis])
    start = lengths.new_zeros((*lengths._shape[:-1], 1))
    return data, reduce, _CAT.call([start, lengths], -1).cumsum(-1), axis, initial


@composite("data, reduce, offsets, axis, initial", rule=_canonical, method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    r"""Return the reductions of stretches of a dimension.

    Parameters
    ----------
    data : Tensor
        Floating-point numbers, of shape (\*B, size, \*).
    reduce : {"sum", "mean", "max", "min", "prod"}
        How; "amax" and "amin" are other names.
    lengths : Tensor of int32 or int64, optional
        (\*B, segments), how long each is.
    indices : None
        Not supported, as in torch.
    offsets : Tensor of int32 or int64, optional
        (\*B, segments + 1), where each begins, and where the last ends, instead of the lengths.
    axis : int
        The dimension, the last one of the lengths.
    unsafe : bool
        Whether lengths are not looked at. Elements behind the last segment are then left out.
    initial : number, optional
        What each reduction starts from. Of a mean it counts into the sum.

    Returns
    -------
    Tensor
        (\*B, segments, \*). A segment without elements is `initial`, or else 0, NaN of means, -inf, inf
        and 1.

    Raises
    ------
    RuntimeError
        For lengths that are negative or do not add up to the size.
    NotImplementedError
        For data of other dtypes.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([1.0, 2.0, 3.0, 4.0])
    >>> tp.segment_reduce(x, "max", lengths=tp.tensor([3, 1]))
    tensor([3., 4.])
    """
    # The rule has made offsets of lengths.
    starts: Any = offsets
    wide: Any = cast(data, float32) if data.dtype in (float16, bfloat16) else data
    lead, rest = data._shape[:axis], data._shape[axis + 1 :]
    segments = starts._shape[-1] - 1
    way, empty = _WAYS[reduce]
    place = _ARANGE.call(data._shape[axis], dtype=starts.dtype, device=data.device)
    place = place.expand(*lead, data._shape[axis]).contiguous()
    found = _SEARCHSORTED.call(starts[..., 1:].contiguous(), place, right=True)
    # Elements in front of the first segment and behind the last go to one more, which is dropped.
    found = _WHERE.call(place < starts[..., :1], segments, found)
    found = found.reshape((*found._shape, *[1] * len(rest))).expand(data._shape)
    # An initial value of extremes takes no part in the scattering: ties with it get no gradient.
    summed = way in ("sum", "prod")
    first = empty if initial is None or not summed else initial
    base = _FULL.call((*lead, segments + 1, *rest), first, dtype=wide.dtype, device=data.device)
    result: Any = scatter_reduce(base, axis, found, wide, way, include_self=summed)
    if not summed:
        # scatter_reduce has no gradient for nan, which equals nothing.
        lost = isnan(wide)
        zeros = _FULL.call(base._shape, 0.0, dtype=wide.dtype, device=data.device)
        nans = scatter_add(zeros, axis, found, _WHERE.call(lost, wide, 0.0))
        count = scatter_add(zeros, axis, found, lost.to(wide.dtype))
        result = _WHERE.call(isnan(result), nans / count.clamp(min=1), result)
    result = result.narrow(axis, 0, segments)
    if reduce == "mean":
        count = starts.diff().reshape(*lead, segments, *[1] * len(rest))
        none = math.nan if initial is None else initial
        result = _WHERE.call(count == 0, none, result / count.clamp(min=1))
    elif initial is not None and not summed:
        # Beside an initial nan nothing is kept.
        kept = result >= initial if way == "amax" else result <= initial
        result = _WHERE.call(logical_or(kept, isnan(result)), result, initial)
    return cast(result, data.dtype)
