"""Sliding windows: what convolution and pooling are made of.

Tensors are (N, C, *spatial) with one, two or three spatial dimensions, padded already. Windows are
(N, C, *positions, *kernel).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.autograd.vmap.vmap_rules import first_dim_is_batch
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import zeros
from tensorplug.core.ops.copying import copied
from tensorplug.core.ops.indexing.indexing import basic_index, place
from tensorplug.core.tensor.shapes import Shape, contiguous_strides

from .._formats import formatted

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def positions(size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Shape:
    """Return how many windows fit along each dimension of a padded size.

    Raises
    ------
    RuntimeError
        If a stride is not positive.
    """
    if min(stride, default=1) < 1:
        raise RuntimeError(f"stride should be greater than zero, but got {list(stride)}")
    return tuple(
        [
            (s - d * (k - 1) - 1) // st + 1
            for s, k, st, d in zip(size, kernel, stride, dilation, strict=True)
        ]
    )


def window_view(input: Tensor, kernel: Shape, stride: Shape, dilation: Shape) -> Tensor:
    """Return the windows as a view of contiguous memory; not recorded as such, see the ops below."""
    input = input.contiguous()
    shape = input._shape
    strides = contiguous_strides(shape)
    spatial = strides[2:]
    return input.as_strided(
        (*shape[:2], *positions(shape[2:], kernel, stride, dilation), *kernel),
        (
            *strides[:2],
            *[s * step for s, step in zip(spatial, stride, strict=True)],
            *[s * step for s, step in zip(spatial, dilation, strict=True)],
        ),
    )


@composite(
    shapes="input(N, C, *S), kernel_size[S]+, dilation[S]+, padding[S], stride[S]+", method=False
)
def im2col(
    input: Tensor, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape
) -> Tensor:
    """Return a copy of every window, as columns.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    kernel_size, dilation, padding, stride : tuple of int
        One per spatial dimension; the padding is of zeros, on both sides.

    Returns
    -------
    Tensor
        (N, C * prod(kernel_size), prod(positions)), contiguous.
    """
    windows = window_view(pad_zeros(input, padding), kernel_size, stride, dilation)
    n, c, *rest = windows._shape
    count = len(kernel_size)
    order = (0, 1, *range(2 + count, 2 + 2 * count), *range(2, 2 + count))
    columns: Tensor = copied(windows.permute(order))
    return columns.reshape(n, c * math.prod(kernel_size), math.prod(rest[:count]))


def _check_columns(
    input: Any,
    output_size: Shape,
    kernel_size: Shape,
    dilation: Shape,
    padding: Shape,
    stride: Shape,
) -> None:
    padded = tuple([s + 2 * p for s, p in zip(output_size, padding, strict=True)])
    where = positions(padded, kernel_size, stride, dilation)
    _, rows, columns = input._shape
    if rows % math.prod(kernel_size) or min(where) < 0 or columns != math.prod(where):
        raise RuntimeError(
            f"col2im(): expected {math.prod(kernel_size)} rows of each channel and a column for each of "
            f"{list(where)} positions, got {list(input.shape)} for an image of {list(output_size)}"
        )


@composite(
    rule=_check_columns,
    shapes="input(N, R, L), output_size[S], kernel_size[S]+, dilation[S]+, padding[S], stride[S]+",
    method=False,
)
def col2im(
    input: Tensor,
    output_size: Shape,
    kernel_size: Shape,
    dilation: Shape,
    padding: Shape,
    stride: Shape,
) -> Tensor:
    """Return columns added up where they came from: the adjoint of :func:`im2col`.

    Parameters
    ----------
    input : Tensor
        (N, C * prod(kernel_size), prod(positions)).
    output_size : tuple of int
        The spatial size of the result.
    kernel_size, dilation, padding, stride : tuple of int
        One per spatial dimension.

    Returns
    -------
    Tensor
        (N, C, *output_size).
    """
    n, rows, _ = input._shape
    c = rows // math.prod(kernel_size)
    padded = tuple([s + 2 * p for s, p in zip(output_size, padding, strict=True)])
    where = positions(padded, kernel_size, stride, dilation)
    windows = input.reshape(n, c, *kernel_size, *where)
    result = zeros((n, c, *padded), dtype=input.dtype, device=input.device)
    outer = (slice(None),) * 2
    for flat in range(math.prod(kernel_size)):
        index = unravel(flat, kernel_size)
        result[(*outer, *strided(index, where, stride, dilation))] += windows[outer + index]
    return unpad(result, padding, output_size).contiguous()


def unravel(flat: int, shape: Shape) -> Shape:
    """Return the index that `flat` stands for, in row-major order."""
    index = []
    for size in reversed(shape):
        flat, rest = divmod(flat, size)
        index.append(rest)
    return tuple(reversed(index))


def strided(index: Shape, count: Shape, stride: Shape, dilation: Shape) -> tuple[slice, ...]:
    """Return where the kernel's element `index` meets the input, for all positions."""
    return tuple(
        [
            slice(i * d, i * d + s * (c - 1) + 1, s)
            for i, c, s, d in zip(index, count, stride, dilation, strict=True)
        ]
    )


def pad_zeros(input: Any, padding: Shape, after: Shape | None = None) -> Any:
    """Return `input` with zeros around its spatial dimensions."""
    after = padding if after is None else after
    if not any(padding) and not any(after):
        return input
    shape = input._shape
    size = [a + s + b for a, s, b in zip(padding, shape[2:], after, strict=True)]
    inside = [slice(a, a + s) for a, s in zip(padding, shape[2:], strict=True)]
    places = tuple([slice(0, n) for n in shape[:2]] + inside)
    return formatted(place(input, (*shape[:2], *size), places), input)


def unpad(input: Any, padding: Shape, size: Shape) -> Any:
    """Return the part of `input` that :func:`pad_zeros` put zeros around."""
    if input._shape[2:] == size:
        return input
    inside = [slice(a, a + s) for a, s in zip(padding, size, strict=True)]
    return basic_index(input, tuple([slice(0, n) for n in input._shape[:2]] + inside))


DERIVATIVES = [
    derivative(
        "im2col",
        input=lambda g, input_shape, kernel_size, dilation, padding, stride: col2im(
            g, tuple(input_shape[2:]), kernel_size, dilation, padding, stride
        ),
    ),
    derivative(
        "col2im",
        input=lambda g, kernel_size, dilation, padding, stride: im2col(
            g, kernel_size, dilation, padding, stride
        ),
    ),
]

VMAP_RULES = [first_dim_is_batch("col2im", "im2col")]
