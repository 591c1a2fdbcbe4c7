"""Pooling over windows of one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, cast, overload

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import int64
from tensorplug.core.dispatch.op_registry import Delegated, composite, composite_like
from tensorplug.core.dispatch.out_dtypes import exact_out
from tensorplug.core.ops import where
from tensorplug.core.tensor.shapes import Shape

from ...ops import pooling as ops
from .._common import RANK_BETWEEN, batched, per_dimension, tensor, unbatched

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

_avg_pool: Any = ops.avg_pool

# What torch says of inputs of another rank.
_BATCH_MODE = (
    "Expected {least}D or {most}D (batch mode) tensor with optional 0 dim batch size for input, but "
    "got:{size}"
)
_NON_EMPTY = "{name}(): non-empty {least}D or {most}D (batch mode) tensor expected for input, but got: {size}"
_MAX_WORDS = {1: "max_pool1d: " + _BATCH_MODE, 2: _NON_EMPTY, 3: _NON_EMPTY}
_AVG_WORDS = {1: RANK_BETWEEN, 2: _BATCH_MODE, 3: _NON_EMPTY}


def _windows(
    count: int, name: str, kernel_size: Ints, stride: Ints | None, padding: Ints
) -> tuple[Shape, Shape, Shape]:
    """Return kernel, stride and padding, one per dimension; the stride is the kernel by default."""
    kernel = per_dimension(kernel_size, count, name, "kernel_size", 1)
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if empty else per_dimension(stride, count, name, "stride", 1)  # type: ignore[arg-type]
    return kernel, steps, per_dimension(padding, count, name, "padding", 0)


def _check(
    name: str,
    input: Any,
    kernel: Shape,
    padding: Shape,
    where: Shape,
    dilation: Shape | None = None,
) -> None:
    spread = dilation or (1,) * len(kernel)
    for k, p, d in zip(kernel, padding, spread, strict=True):
        if p * 2 > d * (k - 1) + 1:
            raise RuntimeError(
                f"{name}(): pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        if p * 2 > k:
            raise RuntimeError(
                f"{name}(): pad should be smaller than or equal to half of kernel size, but got "
                f"padding={p} and kernel_size={k}"
            )
    if 0 in input._shape[1:]:
        raise RuntimeError(f"{name}(): {_no_elements(len(kernel), input)}")
    if min(where) < 1:
        raise RuntimeError(
            f"{name}(): Given input size: ({'x'.join(map(str, input.shape[1:]))}). Calculated output size: "
            f"({'x'.join(map(str, (input.shape[1], *where)))}). Output size is too small"
        )


def _no_elements(count: int, input: Any) -> str:
    """Return what torch says of images without channels or places."""
    if count == 3:
        return (
            "Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(input._shape)}"
        )
    return (
        f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch size for "
        f"input, but got: {list(input._shape)}"
    )


def _max_pool_rule(count: int, name: str, *, both: bool) -> Callable[..., Any]:
    """Return the rule of ``max_pool<count>d``, or of the op that returns indices too."""

    def canonical(
        input: Any,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x, added = batched(input, count, name, _MAX_WORDS[count])
        kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
        spread = per_dimension(dilation, count, name, "dilation", 1)
        where = ops.pooled_size(x._shape[2:], kernel, steps, around, spread, ceil_mode)
        _check(name, x, kernel, around, where, spread)
        values = (x, kernel, steps, around, spread, bool(ceil_mode))
        if added:
            return Delegated(_unbatched(_MAX_POOLS[count][both or return_indices](*values)))
        if return_indices and not both:
            return Delegated(_MAX_POOLS[count][1](*values))
        return values

    return canonical


def _unbatched(results: Any) -> Any:
    """Take the batch dimension of one result or of several away."""
    if isinstance(results, tuple):
        return tuple([result.squeeze(0) for result in results])
    return results.squeeze(0)


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
    name = f"max_pool{count}d"

    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return ops.max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        return ops.max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)

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
    values = "input, kernel_size, stride, padding, dilation, ceil_mode"
    rows = count == 1
    one = composite(values, rule=_max_pool_rule(count, name, both=False), rows=rows, method=False)
    both = composite(
        values,
        rule=_max_pool_rule(count, name, both=True),
        rows=rows,
        outputs="values, indices",
        method=False,
    )
    pools: Any = one(max_pool), both(with_indices)
    return cast(tuple[MaxPool, MaxPoolWithIndices], pools)


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
_MAX_POOLS: dict[int, tuple[Any, Any]] = {
    1: (max_pool1d, max_pool1d_with_indices),
    2: (max_pool2d, max_pool2d_with_indices),
    3: (max_pool3d, max_pool3d_with_indices),
}


def _avg_pool_rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``avg_pool<count>d``."""
    name = f"avg_pool{count}d"

    def canonical(
        input: Any,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        x, added = batched(input, count, name, _AVG_WORDS[count])
        kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
        where = ops.pooled_size(x._shape[2:], kernel, steps, around, (1,) * count, ceil_mode)
        _check(name, x, kernel, around, where)
        if divisor_override == 0:
            raise RuntimeError(f"{name}(): divisor must be not zero")
        values: Any = (x, kernel, steps, around, bool(ceil_mode), bool(count_include_pad))
        if count > 1:
            values += (divisor_override,)
        return Delegated(unbatched(_AVG_POOLS[count](*values), added)) if added else values

    return canonical


@composite(rule=_avg_pool_rule(1), method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of one dimension; see :func:`avg_pool2d`."""
    means: Tensor = _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )
    return means


@composite(rule=_avg_pool_rule(2), method=False)
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
    means: Tensor = _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return means


@composite_like(avg_pool2d, rule=_avg_pool_rule(3), rows=True, method=False)
def avg_pool3d(*args: Any) -> Tensor:
    """Return the mean of each window of three dimensions; see :func:`avg_pool2d`."""
    return _avg_pool(*args)


_AVG_POOLS: dict[int, Callable[..., Any]] = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}


def _lp_pool_rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``lp_pool<count>d``."""
    name = f"lp_pool{count}d"

    def canonical(
        input: Any,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> Any:
        x, added = batched(input, count, name, _AVG_WORDS[count])
        kernel, steps, around = _windows(count, name, kernel_size, stride, 0)
        where = ops.pooled_size(x._shape[2:], kernel, steps, around, (1,) * count, ceil_mode)
        _check(name, x, kernel, around, where)
        values = (x, norm_type, kernel, steps, bool(ceil_mode))
        return Delegated(unbatched(_LP_POOLS[count](*values), added)) if added else values

    return canonical


def _lp_pool(input: Any, norm_type: float, kernel: Any, stride: Any, ceil_mode: bool) -> Any:
    none = (0,) * len(kernel)
    means: Any = ops.avg_pool(input**norm_type, kernel, stride, none, ceil_mode, True, None)
    # Odd powers may be negative: those count as zero, without the slope of abs at it.
    sums = means.sign() * means.abs().relu() * math.prod(kernel)
    none_there = sums == 0  # the root has no slope
    # Not by masked_fill, whose result lies row by row.
    roots = where(none_there, 1.0, sums) ** (1.0 / norm_type)
    return where(none_there, 0.0, roots)


@composite(rule=_lp_pool_rule(2), method=False)
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
    pooled: Tensor = _lp_pool(input, norm_type, kernel_size, stride, ceil_mode)
    return pooled


@composite_like(lp_pool2d, rule=_lp_pool_rule(1), method=False)
def lp_pool1d(*args: Any) -> Tensor:
    """Return the p-norm of each window of one dimension; see :func:`lp_pool2d`."""
    return _lp_pool(*args)


@composite_like(lp_pool2d, rule=_lp_pool_rule(3), method=False)
def lp_pool3d(*args: Any) -> Tensor:
    """Return the p-norm of each window of three dimensions; see :func:`lp_pool2d`."""
    return _lp_pool(*args)


_LP_POOLS: dict[int, Callable[..., Any]] = {1: lp_pool1d, 2: lp_pool2d, 3: lp_pool3d}


def _max_unpool_rule(count: int) -> Callable[..., Any]:
    """Return the rule of ``max_unpool<count>d``."""
    name = f"max_unpool{count}d"

    def canonical(
        input: Any,
        indices: Any,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        output_size: Sequence[int] | None = None,
    ) -> Any:
        kernel, steps, around = _windows(count, name, kernel_size, stride, padding)
        tensor(indices, name, "indices")
        if indices.dtype is not int64:
            raise RuntimeError(
                f"{name}(): elements in indices should be type int64 but got {indices.dtype}"
            )
        x, added = batched(input, count, name)
        if indices._shape != input._shape:
            raise RuntimeError(
                f"{name}(): Expected shape of indices to be same as that of the input tensor "
                f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
            )
        default = tuple(
            [
                (n - 1) * s - 2 * p + k
                for n, s, p, k in zip(x._shape[2:], steps, around, kernel, strict=True)
            ]
        )
        size = _unpooled_size(name, default, steps, output_size)
        if added:
            positions = indices.unsqueeze(0)
            result = _MAX_UNPOOLS[count](x, positions, kernel, steps, around, size)
            return Delegated(unbatched(result, added))
        return input, indices, kernel, steps, around, size

    return canonical


def _max_unpool(
    input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, size: Any
) -> Any:
    n, c = input._shape[:2]
    flat = input.new_zeros((n, c, math.prod(size)))
    flat = flat.scatter(2, indices.flatten(2), input.flatten(2))
    return flat.reshape(n, c, *size)


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


@composite(rule=_max_unpool_rule(2), keeps_format=True, method=False)
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
    unpooled: Tensor = _max_unpool(input, indices, kernel_size, stride, padding, output_size)
    return unpooled


@composite_like(max_unpool2d, rule=_max_unpool_rule(1), method=False)
def max_unpool1d(*args: Any) -> Tensor:
    """Return a partial inverse of :func:`max_pool1d`; see :func:`max_unpool2d`."""
    return _max_unpool(*args)


@composite_like(max_unpool2d, rule=_max_unpool_rule(3), method=False)
def max_unpool3d(*args: Any) -> Tensor:
    """Return a partial inverse of :func:`max_pool3d`; see :func:`max_unpool2d`."""
    return _max_unpool(*args)


_MAX_UNPOOLS: dict[int, Callable[..., Any]] = {1: max_unpool1d, 2: max_unpool2d, 3: max_unpool3d}


exact_out(avg_pool2d, avg_pool3d)
