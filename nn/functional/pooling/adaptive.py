"""Pooling to a wanted output size, whatever the input's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tensorplug.autograd import derivative
from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import FLOATING, int64
from tensorplug.core.dispatch.op_registry import Delegated, composite, composite_like
from tensorplug.core.ops.reductions.reductions import refuse_complex
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.creation import tensor as make_tensor
from tensorplug.core.tensor.shapes import Shape, as_shape

from ...ops import pooling as ops
from ...ops._formats import formatted
from .._common import EITHER_RANK, RANK_BETWEEN, batched_channels, check_room, unbatched

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
    if len(wanted) != count:
        ints = ("", "one int", "two ints", "three ints")[count]
        raise RuntimeError(
            f"{name}(): argument 'output_size' should contain {ints} (got {len(wanted)})"
        )
    known = [s if w is None else w for w, s in zip(wanted, size, strict=True)]
    result = as_shape((tuple(known),), name)
    if min(result, default=0) < 0:
        raise RuntimeError(
            f"{name}(): elements of output_size must be greater than or equal to 0 but received {result}"
        )
    check_room(result, name)
    return result


def _prepare(
    count: int, input: Any, output_size: Any, name: str, no_channels: bool = False
) -> tuple[Any, bool, Shape]:
    several = count > 1 and isinstance(output_size, (tuple, list))
    if several and isinstance(input, TensorBase) and len(input._shape) <= count:
        raise ValueError(
            f"{name}(): Input dimension should be at least {count + 1}, got {len(input._shape)}"
        )
    x: Any
    x, added = batched_channels(input, count, name, EITHER_RANK if count > 1 else RANK_BETWEEN)
    if x._key.dtype.category < FLOATING:
        raise NotImplementedError(
            f"{name}(): not implemented for {x.dtype.name}; convert the input to floating point"
        )
    # As in torch, whose averages over up to two dimensions take no channels as well.
    if 0 in x._shape[2 if no_channels else 1 :]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
            f"sizes {list(input._shape)}"
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
    indices = [[min(start + j, size - 1) for j in range(width)] for start in starts]
    counts = [[j < w for j in range(width)] for w in widths]
    index = make_tensor(indices, dtype=int64, device=x.device).reshape(-1)
    windows = x.index_select(dim, index)
    windows = windows.reshape(*x.shape[:dim], wanted, width, *x.shape[dim + 1 :])
    tail = (1,) * (x.ndim - dim - 1)
    shape = (wanted, width, *tail)
    return (
        windows,
        index.reshape(shape),
        make_tensor(counts, device=x.device).reshape(shape),
    )


def _avg_rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``adaptive_avg_pool<count>d``."""

    def canonical(input: Any, output_size: Sizes) -> Any:
        name = f"adaptive_avg_pool{count}d"
        x, added, wanted = _prepare(count, input, output_size, name, no_channels=count < 3)
        if added:
            return Delegated(unbatched(_AVG_POOLS[count](x, wanted), added))
        return input, wanted

    return canonical


def _max_rule(count: int, *, both: bool) -> Callable[..., Any]:
    """Return the rule of ``adaptive_max_pool<count>d``, or of the op that returns indices too."""

    def canonical(input: Any, output_size: Sizes, return_indices: bool = False) -> Any:
        x, added, wanted = _prepare(count, input, output_size, f"adaptive_max_pool{count}d")
        refuse_complex(x, f"adaptive_max_pool{count}d")
        if added:
            results = _MAX_POOLS[count][both or return_indices](x, wanted)
            if isinstance(results, tuple):
                return Delegated(tuple([unbatched(result, added) for result in results]))
            return Delegated(unbatched(results, added))
        if return_indices and not both:
            return Delegated(_MAX_POOLS[count][1](x, wanted))
        return input, wanted

    return canonical


def _adaptive_avg_pool(input: Any, wanted: Any) -> Any:
    size = input._shape[2:]
    if _even(size, wanted):
        kernel = tuple([s // w for s, w in zip(size, wanted, strict=True)])
        return ops.avg_pool(input, kernel, kernel, (0,) * len(size), False, True, None)
    return ops.adaptive_avg_pool(input, wanted)


def _adaptive_max_pool(x: Any, wanted: Any) -> Any:
    size = x._shape[2:]
    count = len(size)
    if _even(size, wanted):
        kernel = tuple([s // w for s, w in zip(size, wanted, strict=True)])
        return ops.max_pool(x, kernel, kernel, (0,) * count, (1,) * count, False)
    # One dimension after the other, the last one first: the first of equal maxima stays the first.
    best = x.detach()
    flat: Any = None
    for dim in range(1 + count, 1, -1):
        if not wanted[dim - 2]:
            best = best.narrow(dim, 0, 0)
            flat = best.to(int64) if flat is None else flat.narrow(dim, 0, 0)
            continue
        windows, indices, counted = _gathered(best, dim, wanted[dim - 2])
        windows = windows.masked_fill(counted.logical_not(), ops.lowest(x.dtype))
        choice = windows.argmax(dim + 1, keepdim=True)
        stride = math.prod(size[dim - 1 :])
        along = (indices * stride).expand(windows.shape)
        if flat is not None:
            index = indices.reshape(-1)
            along = along + flat.index_select(dim, index).reshape(windows.shape)
        best = windows.gather(dim + 1, choice).squeeze(dim + 1)
        flat = along.gather(dim + 1, choice).squeeze(dim + 1)
    assert flat is not None
    n, c = x.shape[:2]
    indices = flat.reshape(n, c, math.prod(flat.shape[2:]))
    values = x.flatten(2).gather(2, indices).reshape(flat.shape)
    return formatted(values, x), formatted(flat, x)


def _gradient(both: Callable[..., Any]) -> Callable[..., Any]:
    """Return the formula of a pooling without indices, which `both` gives."""

    def gradient(g: Any, input: Any, output_size: Any) -> Any:
        return ops.max_pool_backward(g, both(input, output_size)[1], input._shape)

    return gradient


@composite(rule=_avg_rule(2), method=False)
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
    means: Tensor = _adaptive_avg_pool(input, output_size)
    return means


@composite_like(adaptive_avg_pool2d, rule=_avg_rule(1), method=False)
def adaptive_avg_pool1d(*args: Any) -> Tensor:
    """Return means over windows of one dimension; see :func:`adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(*args)


@composite_like(adaptive_avg_pool2d, rule=_avg_rule(3), rows=True, method=False)
def adaptive_avg_pool3d(*args: Any) -> Tensor:
    """Return means over windows of three dimensions; see :func:`adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(*args)


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@composite("input, output_size", rule=_max_rule(1, both=False), method=False)
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest elements of windows of one dimension; see :func:`adaptive_max_pool2d`."""
    values: Tensor = _adaptive_max_pool(input, output_size)[0]
    return values


@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@composite("input, output_size", rule=_max_rule(2, both=False), method=False)
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
    values: Tensor = _adaptive_max_pool(input, output_size)[0]
    return values


@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: Literal[False] = ...
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@composite("input, output_size", rule=_max_rule(3, both=False), rows=True, method=False)
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest elements of windows of three dimensions; see :func:`adaptive_max_pool2d`."""
    values: Tensor = _adaptive_max_pool(input, output_size)[0]
    return values


@composite(
    "input, output_size",
    rule=_max_rule(1, both=True),
    outputs="values, indices",
    method=False,
)
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return :func:`adaptive_max_pool1d` and the places."""
    both: tuple[Tensor, Tensor] = _adaptive_max_pool(input, output_size)
    return both


@composite_like(
    adaptive_max_pool1d_with_indices,
    rule=_max_rule(2, both=True),
    outputs="values, indices",
    method=False,
)
def adaptive_max_pool2d_with_indices(*args: Any) -> Tensor:
    """Return :func:`adaptive_max_pool2d` and the places."""
    return _adaptive_max_pool(*args)


@composite_like(
    adaptive_max_pool1d_with_indices,
    rule=_max_rule(3, both=True),
    outputs="values, indices",
    method=False,
)
def adaptive_max_pool3d_with_indices(*args: Any) -> Tensor:
    """Return :func:`adaptive_max_pool3d` and the places."""
    return _adaptive_max_pool(*args)


_AVG_POOLS: dict[int, Callable[..., Any]] = {
    1: adaptive_avg_pool1d,
    2: adaptive_avg_pool2d,
    3: adaptive_avg_pool3d,
}
_MAX_POOLS: dict[int, tuple[Any, Any]] = {
    1: (adaptive_max_pool1d, adaptive_max_pool1d_with_indices),
    2: (adaptive_max_pool2d, adaptive_max_pool2d_with_indices),
    3: (adaptive_max_pool3d, adaptive_max_pool3d_with_indices),
}

DERIVATIVES = [
    item
    for count, (_, both) in _MAX_POOLS.items()
    for item in (
        derivative(f"adaptive_max_pool{count}d", input=_gradient(both)),
        derivative(f"adaptive_max_pool{count}d_with_indices", input=ops.gradient_of_maxima),
    )
]
