"""Pooling over windows of one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, overload

from tensorplug.core import Tensor
from tensorplug.core.dtypes import int64
from tensorplug.core.layers import seen_by_layers
from tensorplug.core.shapes import Shape

from ...ops import pooling as ops
from .._common import batched, per_dimension, tensor, unbatched

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Ints = int | Sequence[int]


def _windows(
    count: int, name: str, kernel_size: Ints, stride: Ints | None, padding: Ints
) -> tuple[Shape, Shape, Shape]:
    """Return kernel, stride and padding, one per dimension; the stride is the kernel by default."""
    kernel = per_dimension(kernel_size, count, name, "kernel_size", 1)
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if empty else per_dimension(stride, count, name, "stride", 1)  # type: ignore[arg-type]
    return kernel, steps, per_dimension(padding, count, name, "padding", 0)


def _check(name: str, input: Any, kernel: Shape, padding: Shape, where: Shape) -> None:
    for k, p in zip(kernel, padding, strict=True):
        if p * 2 > k:
            raise RuntimeError(
                f"{name}(): pad should be at most half of effective kernel size, but got pad={p} and "
                f"kernel_size={k}"
            )
    if min(where) < 1 or 0 in input.shape[1:]:
        raise RuntimeError(
            f"{name}(): Given input size {list(input.shape)}, the calculated output size "
            f"{list(where)} is too small"
        )


def _max_pool(
    count: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    name = f"max_pool{count}d"
    x, added = batched(input, count, name)
    kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
    spread = per_dimension(dilation, count, name, "dilation", 1)
    where = ops.pooled_size(x.shape[2:], kernel, steps, around, spread, ceil_mode)
    effective = tuple([d * (k - 1) + 1 for k, d in zip(kernel, spread, strict=True)])
    _check(name, x, effective, around, where)
    values, indices = ops.max_pool(x, kernel, steps, around, spread, bool(ceil_mode))
    return unbatched(values, added), unbatched(indices, added)


class MaxPool(Protocol):
    """What :func:`max_pool2d` and its kin of one and three dimensions are called with."""

    __name__: str
    __qualname__: str

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        return_indices: Literal[False] = ...,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        *,
        return_indices: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        return_indices: bool = ...,
    ) -> Tensor | tuple[Tensor, Tensor]: ...


class MaxPoolWithIndices(Protocol):
    """What :func:`max_pool2d_with_indices` and its kin are called with."""

    __name__: str
    __qualname__: str

    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        return_indices: bool = ...,
    ) -> tuple[Tensor, Tensor]: ...


def _max_pools(count: int) -> tuple[MaxPool, MaxPoolWithIndices]:
    """Return ``max_pool<count>d`` and ``max_pool<count>d_with_indices``."""

    def max_pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        both = _max_pool(count, input, kernel_size, stride, padding, dilation, ceil_mode)
        return both if return_indices else both[0]

    def with_indices(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        return _max_pool(count, input, kernel_size, stride, padding, dilation, ceil_mode)

    name = f"max_pool{count}d"
    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = (
        _MAX_POOL_DOC
        if count == 2
        else (
            f"Return the largest element of each window of {_NUMBERS[count]}; see :func:`max_pool2d`."
        )
    )
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"Return :func:`{name}` and the places."
    return max_pool, with_indices


_NUMBERS = {1: "one dimension", 3: "three dimensions"}

_MAX_POOL_DOC = """Return the largest element of each window.

Parameters
----------
input : Tensor
    (N, C, H, W) or (C, H, W).
kernel_size : int or sequence of int
    The size of the window.
stride : int or sequence of int, optional
    Its step; by default its size.
padding : int or sequence of int
    Rows and columns of minus infinity on both sides, at most half of the window.
dilation : int or sequence of int
    The step within a window.
ceil_mode : bool
    Whether a last window may hang over the end.
return_indices : bool
    Whether to return the places in the flattened plane as well, for :func:`max_unpool2d`.

Raises
------
RuntimeError
    If sizes do not fit.

Examples
--------
>>> import tensorplug as tp
>>> max_pool2d(tp.arange(16.0).reshape(1, 1, 4, 4), 2)
tensor([[[[ 5.,  7.],
          [13., 15.]]]])
"""

max_pool1d, max_pool1d_with_indices = _max_pools(1)
max_pool2d, max_pool2d_with_indices = _max_pools(2)
max_pool3d, max_pool3d_with_indices = _max_pools(3)
max_pool3d = seen_by_layers(max_pool3d)


def _avg_pool(
    count: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    name = f"avg_pool{count}d"
    x, added = batched(input, count, name)
    kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
    where = ops.pooled_size(x.shape[2:], kernel, steps, around, (1,) * count, ceil_mode)
    _check(name, x, kernel, around, where)
    if divisor_override == 0:
        raise RuntimeError(f"{name}(): divisor must be not zero")
    output = ops.avg_pool(
        x, kernel, steps, around, bool(ceil_mode), bool(count_include_pad), divisor_override
    )
    return unbatched(output, added)


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of one dimension; see :func:`avg_pool2d`."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size : int or sequence of int
        The size of the window.
    stride : int or sequence of int, optional
        Its step; by default its size.
    padding : int or sequence of int
        Rows and columns of zeros on both sides, at most half of the window.
    ceil_mode : bool
        Whether a last window may hang over the end.
    count_include_pad : bool
        Whether the padding counts in the mean.
    divisor_override : int, optional
        Divide the sum by this instead.

    Examples
    --------
    >>> import tensorplug as tp
    >>> avg_pool2d(tp.arange(16.0).reshape(1, 1, 4, 4), 2)
    tensor([[[[ 2.5000,  4.5000],
              [10.5000, 12.5000]]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@seen_by_layers
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of three dimensions; see :func:`avg_pool2d`."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(
    count: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None,
    ceil_mode: bool,
) -> Tensor:
    name = f"lp_pool{count}d"
    kernel = per_dimension(kernel_size, count, name, "kernel_size", 1)
    powers = tensor(input, name) ** norm_type
    means = _avg_pool(count, powers, kernel, stride, 0, ceil_mode, True, None)
    # Odd powers may be negative: those count as zero, without the slope of abs at it.
    return (means.sign() * means.abs().relu() * math.prod(kernel)) ** (1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-norm of each window of one dimension; see :func:`lp_pool2d`."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-norm of each window: the p-th root of the sum of the p-th powers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> lp_pool2d(tp.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-norm of each window of three dimensions; see :func:`lp_pool2d`."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _max_unpool(
    count: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{count}d"
    kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
    tensor(indices, name, "indices")
    if indices.dtype is not int64:
        raise RuntimeError(
            f"{name}(): elements in indices should be type int64 but got {indices.dtype}"
        )
    x, added = batched(input, count, name)
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(
            f"{name}(): Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    default = tuple(
        [
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(x.shape[2:], steps, around, kernel, strict=True)
        ]
    )
    size = _unpooled_size(name, default, steps, output_size)
    n, c = x.shape[:2]
    places = indices.reshape(n, c, -1)
    flat = x.new_zeros((n, c, math.prod(size))).scatter(2, places, x.reshape(n, c, -1))
    return unbatched(flat.reshape(n, c, *size), added)


def _unpooled_size(
    name: str, default: Shape, stride: Shape, output_size: Sequence[int] | None
) -> Shape:
    if output_size is None:
        return default
    count = len(default)
    size = tuple(output_size)
    if len(size) == count + 2:
        size = size[2:]
    if len(size) != count:
        raise ValueError(
            f"{name}(): output_size should be a sequence containing {count} or {count + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for wanted, usual, step in zip(size, default, stride, strict=True):
        if not usual - step < wanted < usual + step:
            raise ValueError(
                f'invalid output_size "{list(size)}" (each must be within a stride of {list(default)})'
            )
    return size


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return a partial inverse of :func:`max_pool1d`; see :func:`max_unpool2d`."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@seen_by_layers
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return a partial inverse of :func:`max_pool2d`: the maxima where they were, zeros elsewhere.

    Parameters
    ----------
    input, indices : Tensor
        What ``max_pool2d(..., return_indices=True)`` returned.
    kernel_size, stride, padding
        As they were there.
    output_size : sequence of int, optional
        The size before pooling, where the rest of a division leaves it open.

    Raises
    ------
    ValueError
        If `output_size` is further than a stride from the size that follows from the others.
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@seen_by_layers
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return a partial inverse of :func:`max_pool3d`; see :func:`max_unpool2d`."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
