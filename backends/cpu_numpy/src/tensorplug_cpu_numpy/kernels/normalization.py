"""Normalization, in a few passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

from ..sums import total
from ._formats import laid_out

Array = np.ndarray[Any, Any]


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (
        layer_norm,
        layer_norm_backward,
        rms_norm,
        rms_norm_backward,
        group_norm,
        group_norm_backward,
    ):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)
    for name, kernel in (
        ("native_batch_norm", native_batch_norm),
        ("native_batch_norm_backward", native_batch_norm_backward),
    ):
        table.add(name, kernel)
        table.add(name, _of_halves(kernel), dtypes=halves)


def _of_halves(function: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """Return a kernel that computes in float32; numbers of channels keep their dtype."""

    def kernel(*arguments: Any) -> tuple[Array, ...]:
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        wide = [a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in arguments]
        image, *numbers = function(*wide)
        dtype = arrays[1].dtype if len(arrays) > 1 else arrays[0].dtype
        return image.astype(arrays[0].dtype), *[n.astype(dtype) for n in numbers]

    return kernel


def layer_norm(
    input: Array, normalized_shape: Shape, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Return the input standardised over its last dimensions."""
    return _rows(input, weight, bias, math.prod(normalized_shape), 1, eps, True)


def layer_norm_backward(
    g: Array, input: Array, normalized_shape: Shape, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias."""
    return _backward(g, input, weight, math.prod(normalized_shape), 1, eps, True)


def rms_norm(input: Array, normalized_shape: Shape, weight: Array | None, eps: float) -> Array:
    """Return the input divided by its root mean square over its last dimensions."""
    return _rows(input, weight, None, math.prod(normalized_shape), 1, eps, False)


def rms_norm_backward(
    g: Array, input: Array, normalized_shape: Shape, weight: Array | None, eps: float
) -> tuple[Array, Array]:
    """Return the gradients of input and weight."""
    return _backward(g, input, weight, math.prod(normalized_shape), 1, eps, False)[:2]


def group_norm(
    input: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Return the input standardised over groups of channels."""
    places = math.prod(input.shape[2:])
    length = input.shape[1] // num_groups * places
    return _rows(input, weight, bias, length, places, eps, True)


def group_norm_backward(
    g: Array, input: Array, num_groups: int, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias."""
    places = math.prod(input.shape[2:])
    return _backward(g, input, weight, input.shape[1] // num_groups * places, places, eps, True)


def _centred(rows: Array) -> Array:
    """Return rows minus their means, by way of their first elements: equal ones come to zero exactly."""
    rows = rows - rows[:, :1]
    rows -= total(rows, 1, None, None, True) / rows.dtype.type(rows.shape[1])
    return rows


def _rows(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    length: int,
    repeat: int,
    eps: float,
    centred: bool,
) -> Array:
    """Return runs of `length` elements over their root mean square, times weights, plus biases."""
    if not input.size:
        return input.copy()
    rows = np.ascontiguousarray(input).reshape(-1, length)
    divisor = input.dtype.type(length)
    if centred:
        rows = _centred(rows)
    rstd = total(rows * rows, 1, None, None, True) / divisor
    rstd += input.dtype.type(eps)
    rows = rows / np.sqrt(rstd)
    if weight is not None:
        rows = rows.reshape(-1, weight.size, repeat)
        rows *= weight.reshape(-1, 1)
        if bias is not None:
            rows += bias.reshape(-1, 1)
    return rows.reshape(input.shape)


def _backward(
    g: Array,
    input: Array,
    weight: Array | None,
    length: int,
    repeat: int,
    eps: float,
    centred: bool,
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias; the last two are empty without a weight."""
    if not input.size:
        none = np.zeros(0 if weight is None else weight.shape, input.dtype)
        return g.copy(), none, none.copy()
    divisor = input.dtype.type(length)
    g, input = np.ascontiguousarray(g), np.ascontiguousarray(input)
    p = g if weight is None else g.reshape(-1, weight.size, repeat)
    inner = (p if weight is None else p * weight.reshape(-1, 1)).reshape(-1, length)
    rows = input.reshape(-1, length)
    if centred:
        rows = _centred(rows)
    rstd = 1 / np.sqrt(total(rows * rows, 1, None, None, True) / divisor + input.dtype.type(eps))
    output = rows * rstd
    result = output * (total(inner * output, 1, None, None, True) / -divisor)
    result += inner
    if centred:
        result -= total(inner, 1, None, None, True) / divisor
    result *= rstd
    g_input = result.reshape(input.shape)
    if weight is None:
        return g_input, np.empty(0, input.dtype), np.empty(0, input.dtype)
    sums = [total(t, (0, 2)).reshape(weight.shape) for t in (p * output.reshape(p.shape), p)]
    return g_input, sums[0], sums[1]


def _channels(input: Array) -> tuple[Shape, Shape, Any]:
    """Return all dimensions but the channels', the shape along those, and the elements of each."""
    dims = (0, *range(2, input.ndim))
    count = max(math.prod([input.shape[d] for d in dims]), 1)
    return dims, (1, -1, *[1] * (input.ndim - 2)), input.dtype.type(count)


def native_batch_norm(
    input: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the input standardised per channel, the means, and one over the deviations."""
    dims, shape, count = _channels(input)
    input = laid_out(input, input)
    mean = total(input, dims, None, None, True) / count
    output = input - mean
    rstd = total(output * output, dims, None, None, True) / count
    rstd += input.dtype.type(eps)
    rstd = 1 / np.sqrt(rstd)
    output *= rstd
    if weight is not None and bias is not None:
        output *= weight.reshape(shape)
        output += bias.reshape(shape)
    return output, mean.reshape(-1), rstd.reshape(-1)


def native_batch_norm_backward(
    g_output: Array,
    g_mean: Array,
    g_rstd: Array,
    input: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias; the last two are empty without a weight."""
    dims, shape, count = _channels(input)
    g_output, input = laid_out(g_output, input), laid_out(input, input)
    scale = rstd.reshape(shape)
    output = (input - mean.reshape(shape)) * scale
    inner = g_output if weight is None else g_output * weight.reshape(shape)
    along = total(inner * output, dims, None, None, True) * scale
    along += g_rstd.reshape(shape) * (scale * scale)
    along /= count
    constant = total(inner, dims, None, None, True) * scale
    constant -= g_mean.reshape(shape)
    constant /= count
    result = inner * scale
    result -= output * along
    result -= constant
    if weight is None:
        return result, np.empty(0, input.dtype), np.empty(0, input.dtype)
    return result, total(g_output * output, dims), total(g_output, dims)
