"""Reversed, rotated and repeated copies."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..device.dtypes import DType, int32, int64
from ..dispatch import op_registry
from ..dispatch.op_registry import Delegated, Spec, composite, primitive
from ..tensor.base import TensorBase
from ..tensor.shapes import (
    check_sizes,
    existing_dim,
    given_sizes,
    normalize_dim,
    normalize_dims,
    one_or_several,
)
from .copying import cast, clone, copied
from .indexing.index_select import index_select
from .indexing.indexing import part
from .joining.joining import cat
from .rules import check_tensor
from .shape.expansion import expand
from .shape.shape import copy_shown_as, permuted, reshape, shown_as

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["flip", "fliplr", "flipud", "repeat", "repeat_interleave", "roll", "rot90", "tile"]

_ARANGE = op_registry.handle("arange")
_CUMSUM = op_registry.handle("cumsum")
_SEARCHSORTED = op_registry.handle("searchsorted")


# --- reversed and rotated -----------------------------------------------------------------------


@primitive("input, dims")
def flip(input: Tensor, *axes: Any, dims: Sequence[int] | None = None) -> Spec:
    """Return a copy of `input` with some dimensions in reverse order.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *axes : int, or one sequence of int
        The dimensions; ``dims=`` takes them too.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.flip(tp.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    check_tensor(input, "flip")
    given = given_sizes(axes, dims, "flip", "dims")
    found = normalize_dims(given, len(input._shape), "flip", empty_is_all=False)
    return Spec((input, found), input._shape, input.dtype)


flip.op.keeps_order = True  # type: ignore[attr-defined]


@composite()
def fliplr(input: Tensor) -> Tensor:
    """Return a copy of `input` with its second dimension in reverse order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.fliplr(tp.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if len(input._shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@composite()
def flipud(input: Tensor) -> Tensor:
    """Return a copy of `input` with its first dimension in reverse order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.flipud(tp.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not input._shape:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


def _canonical_roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    check_tensor(input, "roll")
    first = shifts[0] if isinstance(shifts, (tuple, list)) and shifts else shifts
    if type(first) is bool:
        raise TypeError("roll(): argument 'shifts' must be tuple of ints, but found a bool")
    steps = tuple(map(operator.index, one_or_several(shifts)))
    axes = () if dims is None else one_or_several(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    shape = input._shape
    if not axes and len(steps) == 1:
        flat = roll(reshape(input, (math.prod(shape),)), steps, 0)
        return Delegated(copy_shown_as(flat, shape))
    if len(axes) != len(steps):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}"
        )
    if 0 in shape:  # torch does not look at dimensions then
        return Delegated(clone(input))
    return input, steps, tuple([existing_dim(axis, len(shape), "roll") for axis in axes])


@composite(rule=_canonical_roll, rows=True)
def roll(
    input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor:
    """Return a copy of `input` with its elements moved along dimensions, around the end to the start.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    shifts : int or sequence of int
        How far, for each of `dims`.
    dims : int or sequence of int, optional
        Along which dimensions; by default `input` is rolled as if it were flat.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.roll(tp.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    result: Any = input
    steps: Any = shifts
    axes: Any = dims
    for step, dim in zip(steps, axes, strict=True):
        size = input._shape[dim]
        cut = (size - step) % size if size else 0
        if cut:
            result = cat([part(result, dim, cut, size), part(result, dim, 0, cut)], dim)
    return clone(result) if result is input else result


@composite()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy of `input` turned by `k` right angles, from the first of two dimensions to the second.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rot90(tp.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    check_tensor(input, "rot90")
    ndim = len(input._shape)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = (normalize_dim(dim, ndim, "rot90") for dim in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    if turns == 0:
        return clone(input)
    if turns == 2:
        return flip(input, (first, second))
    order = list(range(ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return clone(permuted(flip(input, (second,)), tuple(order)))
    return flip(permuted(input, tuple(order)), (second,))


# --- repeated -----------------------------------------------------------------------------------


@composite()
def repeat(input: Tensor, *sizes: Any, repeats: Sequence[int] | None = None) -> Tensor:
    """Return copies of `input` side by side, so many along each dimension.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *sizes : int, or one sequence of int
        How often along each dimension; further ones in front make new dimensions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    check_tensor(input, "repeat")
    times = given_sizes(sizes, repeats, "repeat", "repeats")
    shape = input._shape
    lead = len(times) - len(shape)
    if lead < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, "
            f"got {list(times)} for {list(shape)}"
        )
    own = (1,) * lead + shape
    final = tuple([n * size for n, size in zip(times, own, strict=True)])
    check_sizes(final, "repeat")
    spread: list[int] = []
    wide: list[int] = []
    for n, size in zip(times, own, strict=True):
        spread.extend((1, size))
        wide.extend((max(n, 0), size))  # of no elements, less than none is none, too
    copies = copied(expand(shown_as(input, tuple(spread)), tuple(wide)))
    return copy_shown_as(copies, final)


@composite()
def tile(input: Tensor, *sizes: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Return copies of `input` side by side; where fewer numbers than dimensions are given, 1 is added.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tile(tp.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    check_tensor(input, "tile")
    times = given_sizes(sizes, dims, "tile", "dims")
    return repeat(input, (1,) * (len(input._shape) - len(times)) + times)


@composite()
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Return a copy of `input` with each of its elements, or slices along `dim`, repeated in place.

    Parameters
    ----------
    input : Tensor
        Any dtype. Alone, it is taken as the repeats of 0, 1, 2, …
    repeats : int or Tensor
        How often: one number, or one for each position.
    dim : int, optional
        By default `input` is taken as flat.
    output_size : int, optional
        The sum of the repeats, if known.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.repeat_interleave(tp.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> tp.repeat_interleave(tp.tensor([1, 2]), tp.tensor([0, 3]))
    tensor([2, 2, 2])
    """
    check_tensor(input, "repeat_interleave")
    if repeats is None:
        return _repeated_positions(input, output_size)
    if dim is None:
        input, dim = reshape(input, (math.prod(input._shape),)), 0
    elif not input._shape:
        input, dim = reshape(input, (1,)), normalize_dim(dim, 0, "repeat_interleave")
    else:
        dim = normalize_dim(dim, len(input._shape), "repeat_interleave")
    shape = input._shape
    if isinstance(repeats, TensorBase):
        if repeats._key.dtype not in (int32, int64):
            raise RuntimeError("repeats has to be Long or Int tensor")
        if len(repeats._shape) > 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        count = math.prod(repeats._shape)
        if count != 1:
            if count != shape[dim]:
                raise RuntimeError(
                    "repeats must have the same size as input along dim, but got repeats.size(0) = "
                    f"{count} and input.size({dim}) = {shape[dim]}"
                )
            return index_select(input, dim, _repeated_positions(repeats, output_size))
        times = int(repeats.item())
    elif isinstance(repeats, int):
        times = repeats
    else:
        raise TypeError(
            f"repeat_interleave(): repeats must be an int or a tensor, got {type(repeats).__name__}"
        )
    if times < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {times}")
    wide = (*shape[: dim + 1], times, *shape[dim + 1 :])
    copies = copied(expand(shown_as(input, (*shape[: dim + 1], 1, *shape[dim + 1 :])), wide))
    return copy_shown_as(copies, (*shape[:dim], shape[dim] * times, *shape[dim + 1 :]))


def _repeated_positions(repeats: Any, output_size: int | None) -> Any:
    """Return 0 as often as the first number says, 1 as the second, and so on."""
    if len(repeats._shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._key.dtype not in (int32, int64):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if not repeats._shape[0]:
        return repeats
    if bool((repeats < 0).any().item()):
        raise RuntimeError("repeats can not be negative")
    ends = _CUMSUM.call(repeats, 0)
    total = int(ends[-1].item())
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"repeat_interleave(): allocated size does not match required size: output_size is "
            f"{output_size}, the repeats sum to {total}"
        )
    steps = _ARANGE.call(total, device=repeats.device)
    positions = _SEARCHSORTED.call(cast_to(ends, int64), steps, right=True)
    return cast_to(positions, repeats.dtype)


def cast_to(tensor: Any, dtype: DType) -> Any:
    """Return `tensor` as `dtype`."""
    return tensor if tensor._key.dtype is dtype else cast(tensor, dtype)
