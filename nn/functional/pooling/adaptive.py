"""Pooling to a wanted output size, whatever the input's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

from tensorplug.core import Tensor
from tensorplug.core.creation import tensor as make_tensor
from tensorplug.core.dtypes import int64
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.shapes import Shape

from ...ops import pooling as ops
from .._common import batched, unbatched

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
]

Sizes = int | Sequence[int | None]


def _output_size(output_size: Any, size: Shape, name: str) -> Shape:
    """Return one size per dimension; None stands for the input's."""
    count = len(size)
    wanted = (
        tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * count
    )
    if len(wanted) == 1:
        wanted *= count
    if len(wanted) != count:
        raise RuntimeError(f"{name}(): output_size must be {count}, got {len(wanted)}")
    result = tuple([s if w is None else int(w) for w, s in zip(wanted, size, strict=True)])
    if min(result, default=0) < 0:
        raise RuntimeError(
            f"{name}(): elements of output_size must be greater than or equal to 0 but received {result}"
        )
    return result


def _prepare(count: int, input: Any, output_size: Any, name: str) -> tuple[Any, bool, Shape]:
    x, added = batched(input, count, name)
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
            f"sizes {list(input.shape)}"
        )
    return x, added, _output_size(output_size, tuple(x.shape[2:]), name)


def _even(size: Shape, wanted: Shape) -> bool:
    return all([w and s % w == 0 for s, w in zip(size, wanted, strict=True)])


def _gathered(x: Any, dim: int, wanted: int) -> tuple[Any, Any, Any]:
    """Return windows along `dim` as (..., wanted, width, ...), their places, and what counts.

    Window i goes from floor(i * size / wanted) to ceil((i + 1) * size / wanted), so widths differ.
    """
    size = x.shape[dim]
    starts = [i * size // wanted for i in range(wanted)]
    widths = [-(-(i + 1) * size // wanted) - start for i, start in enumerate(starts)]
    width = max(widths, default=1)
    places = [[min(start + j, size - 1) for j in range(width)] for start in starts]
    counts = [[j < w for j in range(width)] for w in widths]
    index = make_tensor(places, dtype=int64, device=x.device).reshape(-1)
    windows = x.index_select(dim, index)
    windows = windows.reshape(*x.shape[:dim], wanted, width, *x.shape[dim + 1 :])
    tail = (1,) * (x.ndim - dim - 1)
    shape = (wanted, width, *tail)
    return (
        windows,
        index.reshape(shape),
        make_tensor(counts, device=x.device).reshape(shape),
    )


def _adaptive_avg_pool(count: int, input: Tensor, output_size: Any) -> Tensor:
    name = f"adaptive_avg_pool{count}d"
    x, added, wanted = _prepare(count, input, output_size, name)
    size = tuple(x.shape[2:])
    if _even(size, wanted):
        kernel = tuple([s // w for s, w in zip(size, wanted, strict=True)])
        output = ops.avg_pool(x, kernel, kernel, (0,) * count, False, True, None)
        return unbatched(output, added)
    return unbatched(ops.adaptive_avg_pool(x, wanted), added)


def _adaptive_max_pool(count: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    name = f"adaptive_max_pool{count}d"
    x, added, wanted = _prepare(count, input, output_size, name)
    size = tuple(x.shape[2:])
    if _even(size, wanted):
        kernel = tuple([s // w for s, w in zip(size, wanted, strict=True)])
        values, places = ops.max_pool(x, kernel, kernel, (0,) * count, (1,) * count, False)
        return unbatched(values, added), unbatched(places, added)
    # One dimension after the other, the last one first: the first of equal maxima stays the first.
    best = x.detach()
    flat: Any = None
    for dim in range(1 + count, 1, -1):
        if not wanted[dim - 2]:
            best = best.narrow(dim, 0, 0)
            flat = best.to(int64) if flat is None else flat.narrow(dim, 0, 0)
            continue
        windows, places, counted = _gathered(best, dim, wanted[dim - 2])
        windows = windows.masked_fill(counted.logical_not(), ops.lowest(x.dtype))
        choice = windows.argmax(dim + 1, keepdim=True)
        stride = math.prod(size[dim - 1 :])
        along = (places * stride).expand(windows.shape)
        if flat is not None:
            index = places.reshape(-1)
            along = along + flat.index_select(dim, index).reshape(windows.shape)
        best = windows.gather(dim + 1, choice).squeeze(dim + 1)
        flat = along.gather(dim + 1, choice).squeeze(dim + 1)
    assert flat is not None
    n, c = x.shape[:2]
    values = x.reshape(n, c, -1).gather(2, flat.reshape(n, c, -1)).reshape(flat.shape)
    return unbatched(values, added), unbatched(flat, added)


def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return means over windows of one dimension; see :func:`adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return means over windows that divide the input as evenly as can be.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    output_size : int or sequence of int or None
        The size of the result; None stands for the input's.

    Raises
    ------
    RuntimeError
        If the input is empty, or the sizes are not one per dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> adaptive_avg_pool2d(tp.arange(16.0).reshape(1, 4, 4), 1)
    tensor([[[7.5000]]])
    """
    return _adaptive_avg_pool(2, input, output_size)


@seen_by_layers
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return means over windows of three dimensions; see :func:`adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(3, input, output_size)


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest elements of windows of one dimension; see :func:`adaptive_max_pool2d`."""
    both = _adaptive_max_pool(1, input, output_size)
    return both if return_indices else both[0]


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest elements of windows that divide the input as evenly as can be.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    output_size : int or sequence of int or None
        The size of the result; None stands for the input's.
    return_indices : bool
        Whether to return the places in the flattened plane as well.
    """
    both = _adaptive_max_pool(2, input, output_size)
    return both if return_indices else both[0]


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@seen_by_layers
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest elements of windows of three dimensions; see :func:`adaptive_max_pool2d`."""
    both = _adaptive_max_pool(3, input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return :func:`adaptive_max_pool1d` and the places."""
    return _adaptive_max_pool(1, input, output_size)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return :func:`adaptive_max_pool2d` and the places."""
    return _adaptive_max_pool(2, input, output_size)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return :func:`adaptive_max_pool3d` and the places."""
    return _adaptive_max_pool(3, input, output_size)
