"""Pooling over sliding windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.autograd.vmap.vmap_rules import first_dim_is_batch
from tensorplug.core.device.dtypes import FLOATING, INTEGER, bool_, iinfo, int64, scalar_type
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import arange, full, scatter_add, where as where_, zeros
from tensorplug.core.ops.reductions.reductions import refuse_complex
from tensorplug.core.ops.rules import in_float32
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.shapes import Shape

from ._formats import formatted
from .convolution.unfold import col2im, im2col, pad_zeros, unpad, window_view

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def pooled_size(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    """Return the number of windows along each dimension, as torch counts them.

    With `ceil_mode` a last window may hang over the end, but it has to begin inside the input or the left
    padding.
    """
    result = []
    for s, k, st, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        count = (-(-span // st) if ceil_mode else span // st) + 1
        if ceil_mode and (count - 1) * st >= s + p:
            count -= 1
        result.append(count)
    return tuple(result)


def lowest(dtype: Any) -> Any:
    """Return the value that loses every maximum."""
    return -math.inf if dtype.category >= FLOATING else iinfo(dtype).min


def _padded(
    input: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    where: Shape,
    value: Any,
) -> Any:
    """Return `input` with `value` around it, so wide that exactly the windows of `where` fit."""
    shape = input._shape
    size = [
        (w - 1) * st + d * (k - 1) + 1
        for w, k, st, d in zip(where, kernel, stride, dilation, strict=True)
    ]
    kept = [min(s, n - p) for s, n, p in zip(shape[2:], size, padding, strict=True)]
    inner = input[(..., *[slice(0, k) for k in kept])]
    if not any(padding) and tuple(kept) == tuple(size):
        return inner
    result = full((*shape[:2], *size), value, dtype=input.dtype, device=input.device)
    result[(..., *[slice(p, p + k) for p, k in zip(padding, kept, strict=True)])] = inner
    return result


def _check_windows(
    name: str, size: Shape, where: Shape | None, kernel: Shape, *options: Any
) -> None:
    """Raise unless windows fit, and are as many as the output says; none lies in the padding altogether."""
    stride, padding, dilation, ceil_mode = options
    fit = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    outside = any([p > d * (k - 1) for p, k, d in zip(padding, kernel, dilation, strict=True)])
    if min(fit, default=1) < 1 or outside or where not in (None, fit):
        raise RuntimeError(
            f"{name}(): windows of {list(kernel)} do not fit {list(size)} with stride {list(stride)}, "
            f"padding {list(padding)}, dilation {list(dilation)}"
            + ("" if where is None else f" into {list(where)}")
        )


def _check_max_pool(input: Any, *options: Any) -> None:
    refuse_complex(input, "max_pool")
    _check_windows("max_pool", input._shape[2:], None, *options)


def _check_max_pool_backward(gradient: Any, indices: Any, shape: Shape) -> None:
    _check_shape("max_pool_backward", gradient, shape)


def _check_avg_pool(input: Any, kernel: Shape, stride: Shape, padding: Shape, *rest: Any) -> None:
    if input.dtype.category < FLOATING and input.dtype is not int64:
        raise NotImplementedError(
            f'avg_pool(): "avg_pool" not implemented for {scalar_type(input.dtype)!r}; convert the input '
            "to floating point, or to int64 for whole averages"
        )
    ones = (1,) * len(kernel)
    _check_windows("avg_pool", input._shape[2:], None, kernel, stride, padding, ones, rest[0])


def _check_avg_pool_backward(
    g: Any, size: Shape, kernel: Shape, stride: Shape, padding: Shape, *rest: Any
) -> None:
    ones, where = (1,) * len(kernel), g._shape[2:]
    _check_windows("avg_pool_backward", size, where, kernel, stride, padding, ones, rest[0])


def _check_adaptive(input: Any, size: Shape) -> None:
    if not math.prod(input._shape[2:]):
        raise RuntimeError(f"adaptive_avg_pool(): empty spatial dimensions: {list(input._shape)}")


def _check_adaptive_backward(gradient: Any, shape: Shape) -> None:
    _check_shape("adaptive_avg_pool_backward", gradient, shape)


def _check_shape(name: str, gradient: Any, shape: Any) -> None:
    """Raise unless a gradient may be of the output for an input of that shape."""
    sizes = isinstance(shape, tuple) and all(
        [isinstance(size, int) and size >= 0 for size in shape]
    )
    given = gradient._shape
    if not sizes or len(shape) != len(given) or shape[:2] != given[:2]:
        raise RuntimeError(f"{name}(): a gradient {list(given)} has no input of shape {shape}")


@composite(
    shapes="input(N, C, *S), kernel[S]+, stride[S]+, padding[S], dilation[S]+",
    rule=_check_max_pool,
    method=False,
    outputs="values, indices",
)
def max_pool(
    input: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window, and its place in the flattened spatial plane.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    kernel, stride, padding, dilation : tuple of int
        One per spatial dimension; padding counts as minus infinity.
    ceil_mode : bool
        Whether a window may hang over the end.

    Returns
    -------
    values, indices : Tensor
        (N, C, *positions), of the input's dtype and int64. Of a window that lies in the padding altogether,
        as dilated ones may, minus infinity and 0.
    """
    size = input._shape[2:]
    where = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    padded = _padded(input, kernel, stride, padding, dilation, where, lowest(input.dtype))
    windows = window_view(padded, kernel, stride, dilation)
    shape = windows._shape[: 2 + len(kernel)]
    best = windows.flatten(len(shape)).argmax(-1)
    flat: Any = 0
    first: Any = 0
    outside: Any = False
    empty: Any = False
    rest = best
    for dim in range(len(kernel) - 1, -1, -1):
        row, spread = math.prod(size[dim + 1 :]), dilation[dim]
        along = rest % kernel[dim]
        rest = rest // kernel[dim]
        start: Any = arange(where[dim], device=input.device) * stride[dim] - padding[dim]
        start = start.reshape([-1 if d == dim else 1 for d in range(len(kernel))])
        at = start + along * spread
        flat = flat + at * row
        inside = start + (-start).clamp(min=0).add(spread - 1) // spread * spread
        first = first + inside * row
        outside = outside | (at < 0) | (at >= size[dim])
        empty = empty | (inside >= size[dim])
    # Where the padding won, nothing inside is larger: the first element there is, or none.
    flat = where_(outside, where_(empty, 0, first), flat)
    values = input.flatten(2).gather(2, flat.flatten(2)).reshape(shape)
    values = values.masked_fill(empty, lowest(input.dtype))
    return formatted(values, input), formatted(flat, input)


@composite(
    shapes="gradient(N, C, *P), indices:int64(N, C, *P)",
    rule=_check_max_pool_backward,
    method=False,
)
@in_float32
def max_pool_backward(gradient: Tensor, indices: Tensor, shape: Shape) -> Tensor:
    """Return the gradient put, and added up, where the maxima were.

    Parameters
    ----------
    gradient, indices : Tensor
        (N, C, *positions).
    shape : tuple of int
        (N, C, *spatial).
    """
    n, c, *size = shape
    empty = zeros((n, c, math.prod(size)), dtype=gradient.dtype, device=gradient.device)
    found = scatter_add(empty, 2, indices.flatten(2), gradient.flatten(2)).reshape(shape)
    return formatted(found, gradient)


def _maxima(values: Any, indices: Any) -> Any:
    """Return what stands at the places where the maxima were."""
    return values.flatten(2).gather(2, indices.flatten(2)).reshape(indices.shape)


@composite(
    shapes="input(N, C, *S), kernel[S]+, stride[S]+, padding[S]", rule=_check_avg_pool, method=False
)
@in_float32
def avg_pool(
    input: Tensor,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """Return the mean of each window.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    count_include_pad : bool
        Whether the padding counts in the divisor.
    divisor : int, optional
        Divide by this instead.
    """
    size = input._shape[2:]
    ones = (1,) * len(kernel)
    where = pooled_size(size, kernel, stride, padding, ones, ceil_mode)
    needed = [(w - 1) * st + k for w, k, st in zip(where, kernel, stride, strict=True)]
    kept = tuple([min(s, n - p) for s, n, p in zip(size, needed, padding, strict=True)])
    after = tuple([n - p - k for n, p, k in zip(needed, padding, kept, strict=True)])
    inner = input[(..., *[slice(0, k) for k in kept])]
    none = (0,) * len(kernel)
    columns = im2col(pad_zeros(inner, padding, after), kernel, ones, none, stride)
    shape = input._shape[:2]
    total = columns.reshape(*shape, math.prod(kernel), math.prod(where))
    total = total.sum(2).reshape((*shape, *where))
    means = _divided(total, size, kernel, stride, padding, count_include_pad, divisor)
    return formatted(means, input)


@composite(
    shapes="g(N, C, *P), size[P], kernel[P]+, stride[P]+, padding[P]",
    rule=_check_avg_pool_backward,
    method=False,
)
@in_float32
def avg_pool_backward(
    g: Tensor,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """Return the gradient of :func:`avg_pool`, whose input had the spatial sizes `size`."""
    count, where = len(kernel), g._shape[2:]
    shared = _divided(g, size, kernel, stride, padding, count_include_pad, divisor)
    n, c = g._shape[:2]
    columns = shared.reshape(n, c, 1, math.prod(where)).expand(-1, -1, math.prod(kernel), -1)
    columns = columns.reshape(n, c * math.prod(kernel), math.prod(where))
    needed = tuple([(w - 1) * st + k for w, st, k in zip(where, stride, kernel, strict=True)])
    padded = col2im(columns, needed, kernel, (1,) * count, (0,) * count, stride)
    kept = tuple([min(s, n - p) for s, n, p in zip(size, needed, padding, strict=True)])
    inner = unpad(padded, padding, kept)
    rest = tuple([s - k for s, k in zip(size, kept, strict=True)])
    return formatted(pad_zeros(inner, (0,) * count, rest), g)


def _divided(
    total: Any,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    """Return each window's number divided by how many elements count in it."""
    if divisor is not None:
        return _quotient(total, divisor)
    where = total._shape[2:]
    needed = [(w - 1) * st + k for w, k, st in zip(where, kernel, stride, strict=True)]
    if not any(padding) and all([n <= s for n, s in zip(needed, size, strict=True)]):
        return _quotient(total, math.prod(kernel))
    counts: Any = 1
    for dim in range(len(kernel)):
        along = _counts(
            size[dim], where[dim], kernel[dim], stride[dim], padding[dim], count_include_pad
        )
        shape = [-1 if d == dim else 1 for d in range(len(kernel))]
        counts = counts * _tensor(along, total).reshape(shape)
    return _quotient(total, counts)


def _quotient(total: Any, divisor: Any) -> Any:
    whole = total.dtype.category == INTEGER
    return total.div(divisor, rounding_mode="trunc") if whole else total / divisor


@composite(shapes="input(N, C, *S), size[S]", rule=_check_adaptive, method=False)
@in_float32
def adaptive_avg_pool(input: Tensor, size: Shape) -> Tensor:
    """Return the means of so many shares of each dimension.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial), none of its spatial dimensions empty.
    size : tuple of int
        One per spatial dimension.

    Returns
    -------
    Tensor
        (N, C, *size).

    Notes
    -----
    Share i goes from floor(i * spatial / size) to ceil((i + 1) * spatial / size), so that widths differ.
    """
    image = input
    for dim, wanted in enumerate(size, 2):  # a mean over a box is a mean of means
        index, counted, widths = _shares(input, dim, input._shape[dim], wanted)
        windows = input.index_select(dim, index.flatten())
        windows = windows.reshape(
            *input._shape[:dim], wanted, index._shape[1], *input._shape[dim + 1 :]
        )
        input = windows.masked_fill(counted.logical_not(), 0.0).sum(dim + 1) / widths
    return formatted(input, image)


@composite(shapes="gradient(N, C, *P)", rule=_check_adaptive_backward, method=False)
@in_float32
def adaptive_avg_pool_backward(gradient: Tensor, shape: Shape) -> Tensor:
    """Return the gradient of :func:`adaptive_avg_pool` with respect to its input.

    Parameters
    ----------
    gradient : Tensor
        (N, C, *size).
    shape : tuple of int
        (N, C, *spatial), of the input.
    """
    image = gradient
    for dim in range(2, len(shape)):
        before = gradient._shape
        index, counted, widths = _shares(gradient, dim, shape[dim], before[dim])
        width = index._shape[1]
        each = (gradient / widths).unsqueeze(dim + 1)
        each = each.expand((*before[: dim + 1], width, *before[dim + 1 :]))
        each = each.masked_fill(counted.logical_not(), 0.0).flatten(dim, dim + 1)
        empty = zeros(
            (*before[:dim], shape[dim], *before[dim + 1 :]),
            dtype=gradient.dtype,
            device=gradient.device,
        )
        gradient = empty.index_add(dim, index.flatten(), each)
    return formatted(gradient, image)


def _shares(like: Any, dim: int, size: int, wanted: int) -> tuple[Any, Any, Any]:
    """Return the places of each share, (wanted, width), which of them count, and how many do.

    The latter two are shaped as the dimensions from `dim` on.
    """
    starts = [i * size // wanted for i in range(wanted)]
    widths = [-(-(i + 1) * size // wanted) - start for i, start in enumerate(starts)]
    most = range(max(widths, default=1))
    indices = [[min(start + j, size - 1) for j in most] for start in starts]
    counts = [[j < width for j in most] for width in widths]
    tail = (1,) * (len(like._shape) - dim - 1)
    shape = (wanted, len(most))
    return (
        tensor(indices, dtype=int64, device=like.device).reshape(shape),
        tensor(counts, dtype=bool_, device=like.device).reshape((*shape, *tail)),
        _tensor(widths, like).reshape(-1, *tail),
    )


def _counts(
    size: int, where: int, kernel: int, stride: int, padding: int, include_pad: bool
) -> list[int]:
    """Return how many elements count in each window along one dimension."""
    low, high = (-padding, size + padding) if include_pad else (0, size)
    starts = [i * stride - padding for i in range(where)]
    return [min(start + kernel, high) - max(start, low) for start in starts]


def _tensor(values: list[int], like: Any) -> Any:
    return tensor(values, dtype=like.dtype, device=like.device)


def gradient_of_maxima(g_values: Any, indices: Any, input_shape: Any) -> Any:
    """Return the gradient of the input of a pooling of maxima that returns their indices, too."""
    return max_pool_backward(g_values, indices, tuple(input_shape))


DERIVATIVES = [
    derivative("max_pool", input=gradient_of_maxima),
    derivative(
        "max_pool_backward",
        gradient=lambda g, indices: _maxima(g, indices),
    ),
    derivative(
        "avg_pool",
        input=lambda g, input_shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor: (
            avg_pool_backward(
                g,
                tuple(input_shape[2:]),
                kernel,
                stride,
                padding,
                ceil_mode,
                count_include_pad,
                divisor,
            )
        ),
    ),
    derivative(
        "avg_pool_backward",
        g=lambda g, kernel, stride, padding, ceil_mode, count_include_pad, divisor: avg_pool(
            g, kernel, stride, padding, ceil_mode, count_include_pad, divisor
        ),
    ),
    derivative(
        "adaptive_avg_pool",
        input=lambda g, input_shape: adaptive_avg_pool_backward(g, tuple(input_shape)),
    ),
    derivative(
        "adaptive_avg_pool_backward",
        gradient=lambda g, gradient_shape: adaptive_avg_pool(g, tuple(gradient_shape[2:])),
    ),
]

VMAP_RULES = [first_dim_is_batch("avg_pool", "max_pool")]
