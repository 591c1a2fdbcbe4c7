"""Sliding windows: what convolution and pooling are made of.

Tensors are (N, C, *spatial) with one, two or three spatial dimensions, padded already. Windows are
(N, C, *positions, *kernel).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.autograd.vmap_rules import first_dim_is_batch
from tensorplug.core.operators import composite
from tensorplug.core.ops import zeros
from tensorplug.core.ops.copying import copied
from tensorplug.core.ops.indexing.indexing import basic_index, place
from tensorplug.core.shapes import Shape, contiguous_strides

if TYPE_CHECKING:
    from tensorplug.core import Tensor


def positions(size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Shape:
    """Return how many windows fit along each dimension of a padded size."""
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


@composite(method=False)
def unfold_windows(input: Tensor, kernel: Shape, stride: Shape, dilation: Shape) -> Tensor:
    """Return a copy of every window.

    Parameters
    ----------
    input : Tensor
        (N, C, *spatial).
    kernel, stride, dilation : tuple of int
        One per spatial dimension.

    Returns
    -------
    Tensor
        (N, C, *positions, *kernel), contiguous.
    """
    return copied(window_view(input, kernel, stride, dilation))


@composite(method=False)
def fold_windows(
    windows: Tensor, size: Shape, kernel: Shape, stride: Shape, dilation: Shape
) -> Tensor:
    """Return windows added up where they came from: the adjoint of :func:`unfold_windows`.

    Parameters
    ----------
    windows : Tensor
        (N, C, *positions, *kernel).
    size : tuple of int
        The spatial size of the result.

    Returns
    -------
    Tensor
        (N, C, *size).
    """
    shape = windows._shape
    count = len(kernel)
    result = zeros((*shape[:2], *size), dtype=windows.dtype, device=windows.device)
    outer = (slice(None),) * (2 + count)
    for flat in range(math.prod(kernel)):
        index = unravel(flat, kernel)
        result[
            (slice(None), slice(None), *strided(index, shape[2 : 2 + count], stride, dilation))
        ] += windows[outer + index]
    return result


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
    return place(input, (*shape[:2], *size), tuple([slice(0, n) for n in shape[:2]] + inside))


def unpad(input: Any, padding: Shape, size: Shape) -> Any:
    """Return the part of `input` that :func:`pad_zeros` put zeros around."""
    if input._shape[2:] == size:
        return input
    inside = [slice(a, a + s) for a, s in zip(padding, size, strict=True)]
    return basic_index(input, tuple([slice(0, n) for n in input._shape[:2]] + inside))


def _fold(g: Any, input_shape: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Any:
    return fold_windows(g, tuple(input_shape[2:]), kernel, stride, dilation)


DERIVATIVES = [
    derivative(
        "unfold_windows",
        input=lambda g, input_shape, kernel, stride, dilation: _fold(
            g, input_shape, kernel, stride, dilation
        ),
    ),
    derivative(
        "fold_windows",
        windows=lambda g, kernel, stride, dilation: unfold_windows(g, kernel, stride, dilation),
    ),
]

VMAP_RULES = [first_dim_is_batch("fold_windows", "unfold_windows")]
