"""Convolution and its two adjoints: by cuDNN where it is installed, else by products over windows."""

from __future__ import annotations

import itertools
import math
from typing import Any

from tensorplug.plugin import FLOATS, KernelTable, Shape

from .._cupy import cp
from ..dtypes import HALVES, NATIVES
from ..libraries.cudnn_graphs import Options, convolve
from .layouts import dense, empty_like
from .matmul import matmul

_HALF_TYPES = tuple([NATIVES[dtype] for dtype in HALVES])


def build(table: KernelTable) -> None:
    """Add these kernels to `table`; complex numbers are left to the ops' bodies."""
    for function in (convolution, convolution_input, convolution_weight):
        table.add(function.__name__, function, dtypes=FLOATS)


def convolution(
    input: Any,
    weight: Any,
    bias: Any | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the cross-correlation."""
    sizes = zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    where = [(s + 2 * p - d * (k - 1) - 1) // st + 1 for s, k, st, p, d in sizes]
    image = dense(input)
    output = empty_like(image, (input.shape[0], weight.shape[0], *where))
    if output.size:
        options = Options(stride, padding, dilation)
        if not _by_cudnn("conv_fprop", image, dense(weight), output, options):
            output[...] = _forward(input, weight, output.shape, options, groups)
    if bias is not None:
        output += bias.reshape(-1, *[1] * len(where))
    return output


def convolution_input(
    gradient: Any,
    weight: Any,
    size: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the adjoint with respect to the input."""
    loss = dense(gradient)
    result = empty_like(loss, (gradient.shape[0], weight.shape[1] * groups, *size))
    options = Options(stride, padding, dilation)
    if not gradient.size:
        result[...] = 0
    elif result.size and not _by_cudnn("conv_dgrad", loss, dense(weight), result, options):
        result[...] = _backward(gradient, weight, result.shape, options, groups)
    return result


def convolution_weight(
    input: Any,
    gradient: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """Return the adjoint with respect to the weight."""
    result = cp.empty((gradient.shape[1], input.shape[1] // groups, *kernel), input.dtype)
    options = Options(stride, padding, dilation)
    if not gradient.size or not input.size:
        result[...] = 0
    elif result.size and not _by_cudnn(
        "conv_wgrad", dense(input), dense(gradient), result, options
    ):
        result[...] = _weight(input, gradient, result.shape, options, groups)
    return result


# --- cuDNN --------------------------------------------------------------------------------------


def _by_cudnn(kind: str, first: Any, second: Any, output: Any, options: Options) -> bool:
    """Let cuDNN write into `output`; one spatial dimension is shown to it as two."""
    if output.ndim > 3:
        return convolve(kind, first, second, output, options)
    arrays = [array[:, :, None] for array in (first, second, output)]
    wide = Options((1, *options.stride), (0, *options.padding), (1, *options.dilation))
    return convolve(kind, arrays[0], arrays[1], arrays[2], wide)


# --- products over windows ------------------------------------------------------------------------


def _padded(input: Any, padding: Shape) -> Any:
    if not any(padding):
        return input
    size = [s + 2 * p for s, p in zip(input.shape[2:], padding, strict=True)]
    padded = cp.zeros((*input.shape[:2], *size), input.dtype)
    padded[(..., *[slice(p, p + s) for p, s in zip(padding, input.shape[2:], strict=True)])] = input
    return padded


def _shown(padded: Any, at: Shape, where: Shape, options: Options) -> Any:
    """Return what the kernel's element `at` meets, for all positions."""
    steps = zip(at, where, options.stride, options.dilation, strict=True)
    return padded[(..., *[slice(i * d, i * d + s * (w - 1) + 1, s) for i, w, s, d in steps])]


def _columns(input: Any, kernel: Shape, where: Shape, options: Options, groups: int) -> Any:
    """Return the windows as (N, groups, C/groups * prod(kernel), positions)."""
    n, c = input.shape[:2]
    padded = _padded(input, options.padding)
    columns = cp.empty((n, c, math.prod(kernel), *where), input.dtype)
    for number, at in enumerate(itertools.product(*map(range, kernel))):
        columns[:, :, number] = _shown(padded, at, where, options)
    return columns.reshape(n, groups, c // groups * math.prod(kernel), math.prod(where))


def _rows(weight: Any, groups: int) -> Any:
    """Return the weights as (groups, O/groups, C/groups * prod(kernel))."""
    return weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))


def _forward(input: Any, weight: Any, shape: Shape, options: Options, groups: int) -> Any:
    columns = _columns(input, weight.shape[2:], shape[2:], options, groups)
    return matmul(_rows(weight, groups), columns).reshape(shape)


def _backward(gradient: Any, weight: Any, shape: Shape, options: Options, groups: int) -> Any:
    if gradient.dtype in _HALF_TYPES:  # windows overlap: they are added up in float32
        wide = _backward(gradient.astype("f"), weight.astype("f"), shape, options, groups)
        return wide.astype(gradient.dtype)
    n, c, *size = shape
    kernel, where = weight.shape[2:], gradient.shape[2:]
    by_group = gradient.reshape(n, groups, gradient.shape[1] // groups, math.prod(where))
    columns = matmul(_rows(weight, groups).swapaxes(1, 2), by_group)
    columns = columns.reshape(n, c, math.prod(kernel), *where)
    wide = [s + 2 * p for s, p in zip(size, options.padding, strict=True)]
    padded = cp.zeros((n, c, *wide), gradient.dtype)
    for number, at in enumerate(itertools.product(*map(range, kernel))):
        target = _shown(padded, at, where, options)
        target += columns[:, :, number]
    inside = [slice(p, p + s) for p, s in zip(options.padding, size, strict=True)]
    return padded[(..., *inside)]


def _weight(input: Any, gradient: Any, shape: Shape, options: Options, groups: int) -> Any:
    where = gradient.shape[2:]
    n, o = gradient.shape[:2]
    columns = _columns(input, shape[2:], where, options, groups)
    by_group = gradient.reshape(n, groups, o // groups, math.prod(where))
    products = matmul(by_group, columns.swapaxes(2, 3))
    if products.dtype in _HALF_TYPES:
        return products.astype("f").sum(0).astype(products.dtype).reshape(shape)
    return products.sum(0).reshape(shape)
