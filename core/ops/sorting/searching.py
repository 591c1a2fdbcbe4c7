"""Binary search in sorted sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import float64, int32, int64, result_dtype
from ...dispatch.op_registry import Delegated, composite, handle
from ...dispatch.out_dtypes import exact_out
from ...tensor.predicates import is_tensor
from ..reductions.reductions import refuse_complex
from ..rules import cast, check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["bucketize", "searchsorted"]

_FULL = handle("full")
_WHERE = handle("where")
_ZEROS = handle("zeros")


def _values(name: str, sequence: Tensor, values: Any) -> tuple[Tensor, Tensor]:
    """Return the sequence and what to look for, a number maybe, of one dtype."""
    if not is_tensor(values):
        if not isinstance(values, (bool, int, float)):
            raise TypeError(f"{name}(): expected Tensor or Number, got {type(values).__name__}")
        # A float of any size, or an int of none that integers have.
        wide = float64 if isinstance(values, float) or abs(values) >= 1 << 63 else None
        values = _FULL.call((), values, dtype=wide, device=sequence.device)
    for tensor in (sequence, values):
        refuse_complex(tensor, name)
    dtype = result_dtype((sequence, values))
    return cast(sequence, dtype), cast(values, dtype)


def _canonical_searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    check_tensor(sorted_sequence, "searchsorted", "sorted_sequence")
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(
                f"searchsorted(): side can only be 'left' or 'right' but got {side!r}"
            )
        if side == "left" and right:
            raise RuntimeError(
                "searchsorted(): side and right can't be set to opposites, got side of left "
                "while right was True"
            )
        right = side == "right"
    shape = sorted_sequence._shape
    if not shape:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if is_tensor(input):
        if len(shape) > 1 and input._shape[:-1] != shape[:-1]:
            raise RuntimeError(
                "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
                "dimensions of "
                "boundaries tensor and input value tensor must match, but we got boundaries "
                f"tensor {list(shape)} and input value tensor {list(input._shape)}"
            )
    elif len(shape) > 1:
        raise RuntimeError(
            "searchsorted(): input value can be a scalar only when boundaries tensor dimension "
            f"is 1, but we got boundaries of shape {list(shape)}"
        )
    if sorter is not None:
        check_tensor(sorter, "searchsorted", "sorter")
        if sorter._shape != shape:
            raise RuntimeError(
                "searchsorted(): boundary and sorter must have the same size, but got "
                f"{list(shape)} and {list(sorter._shape)}"
            )
        if sorter.dtype is not int64:
            raise RuntimeError(
                "searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{sorter.dtype}"
            )
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    sequence, values = _values("searchsorted", sorted_sequence, input)
    if out_int32:
        return Delegated(cast(searchsorted(sequence, values, right=right), int32))
    return sequence, values, bool(right)


@composite("sorted_sequence, input, right", rule=_canonical_searchsorted, method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where each of `input` would have to be inserted to keep the rows sorted.

    Parameters
    ----------
    sorted_sequence : Tensor
        Sorted along the last dimension: one sequence, or one for each row of `input`.
    input : Tensor or number
        What to look for; NaN goes behind everything.
    out_int32 : bool
        Return int32 instead of int64.
    right : bool
        Insert behind equal elements rather than before them.
    side : {"left", "right"}, optional
        Another way to say it.
    sorter : Tensor, optional
        Indices that sort an unsorted `sorted_sequence`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.searchsorted(tp.tensor([1, 3, 5]), tp.tensor([3, 6]))
    tensor([1, 3])
    """
    size = sorted_sequence._shape[-1]
    single = len(sorted_sequence._shape) == 1
    flat = input.reshape(-1) if single else input
    low = _ZEROS.call(flat._shape, dtype=int64, device=input.device)
    if size == 0 or 0 in flat._shape:
        return low.reshape(input._shape)
    high = low + size
    # Halve the open interval of each element until all are settled; a settled one stays as it is.
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        here = sorted_sequence.gather(-1, middle.clamp(max=size - 1))
        # Negated, so that NaN goes behind everything.
        beyond = ~(here > flat) if right else ~(here >= flat)
        beyond = beyond & (low < high)
        low = _WHERE.call(beyond, middle + 1, low)
        high = _WHERE.call(beyond, high, middle)
    return low.reshape(input._shape)


@composite(method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the number of the bucket, between `boundaries`, that each of `input` falls into.

    Parameters
    ----------
    input : Tensor or number
        What to sort into buckets.
    boundaries : Tensor
        One-dimensional and ascending.
    out_int32 : bool
        Return int32 instead of int64.
    right : bool
        Count a value equal to a boundary to the bucket above it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bucketize(tp.tensor([3, 6]), tp.tensor([1, 3, 5]))
    tensor([1, 3])
    """
    check_tensor(boundaries, "bucketize", "boundaries")
    if len(boundaries._shape) != 1:
        raise RuntimeError(
            "bucketize(): boundaries tensor must be 1 dimension, but got "
            f"dim({len(boundaries._shape)})"
        )
    sequence, values = _values("bucketize", boundaries, input)
    return searchsorted(sequence, values, out_int32=out_int32, right=bool(right))


exact_out(searchsorted, bucketize)
