"""Kernels of nn's ops, where NumPy does in a few passes what the ops' bodies do in many.

Convolutions put the channels last: the windows are then copied in long runs, and one matrix product serves
all samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

Array = np.ndarray[Any, Any]
_add: Any = np.add.reduce


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (
        linear,
        convolution,
        convolution_input,
        convolution_weight,
        standardize,
        standardize_gradient,
        negative_log_likelihood,
    ):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)
    table.add("embedding_rows", embedding_rows)
    table.add("max_pool", max_pool)
    table.add("max_pool_gradient", max_pool_gradient)
    table.add("max_pool_gradient", namespace.through_float32(max_pool_gradient), dtypes=halves)


def linear(input: Array, weight: Array, bias: Array | None) -> Array:
    """Return ``input @ weight.T + bias``."""
    if weight.dtype.kind in "biu":
        output: Array = np.matmul(input, weight.T).astype(input.dtype, copy=False)
    elif input.ndim > 2 and input.flags.c_contiguous and weight.ndim == 2:
        flat = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        output = np.matmul(flat, weight.T).reshape(*input.shape[:-1], weight.shape[0])
    else:
        output = np.matmul(input, weight.T)
    if bias is None:
        return output
    if output.ndim:
        output += bias
        return output
    return np.asarray(output + bias)


# --- convolution --------------------------------------------------------------------------------


def _columns(
    input: Array, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> tuple[Array, Shape]:
    """Return the windows as (groups, N * positions, prod(kernel) * C/groups), and the positions."""
    n, c = input.shape[:2]
    size = input.shape[2:]
    wide = [s + 2 * p for s, p in zip(size, padding, strict=True)]
    last = np.moveaxis(input, 1, -1)
    if any(padding):
        padded = np.zeros((n, *wide, c), input.dtype)
        inside = tuple([slice(p, p + s) for p, s in zip(padding, size, strict=True)])
        padded[(slice(None), *inside)] = last
    else:
        padded = np.ascontiguousarray(last)
    where = tuple(
        [
            (w - d * (k - 1) - 1) // s + 1
            for w, k, s, d in zip(wide, kernel, stride, dilation, strict=True)
        ]
    )
    strides = padded.strides
    spatial = strides[1:-1]
    windows = np.lib.stride_tricks.as_strided(
        padded,
        (n, *where, *kernel, groups, c // groups),
        (
            strides[0],
            *[a * s for a, s in zip(spatial, stride, strict=True)],
            *[a * d for a, d in zip(spatial, dilation, strict=True)],
            strides[-1] * (c // groups),
            strides[-1],
        ),
        writeable=False,
    )
    rows, width = n * math.prod(where), math.prod(kernel) * (c // groups)
    if groups == 1:
        return windows.reshape(1, rows, width), where
    return np.moveaxis(windows, -2, 0).reshape(groups, rows, width), where


def _flat_weight(weight: Array, groups: int) -> Array:
    """Return (O, C/groups, *kernel) as (groups, prod(kernel) * C/groups, O/groups)."""
    o = weight.shape[0]
    last = np.moveaxis(weight, 1, -1).reshape(groups, o // groups, -1)
    return last.transpose(0, 2, 1)


def _by_group(output: Array, groups: int) -> Array:
    """Return (N, O, *positions) as (groups, N * positions, O/groups)."""
    o = output.shape[1]
    rows = math.prod(output.shape[2:]) * output.shape[0]
    last = np.moveaxis(output, 1, -1).reshape(rows, groups, o // groups)
    return last.transpose(1, 0, 2)


# Windows are spelled out for as many samples at a time as fill this: more would take memory, a multiple of
# the input's, and gain nothing.
_WINDOW_BYTES = 1 << 20


def _parts(input: Array, kernel: Shape, stride: Shape) -> list[slice]:
    """Return slices of the samples whose windows are spelled out together."""
    n = input.shape[0]
    windows = math.prod(input.shape[1:]) * input.itemsize * math.prod(kernel) // math.prod(stride)
    count = max(1, _WINDOW_BYTES // max(windows, 1))
    return [slice(start, start + count) for start in range(0, max(n, 1), count)]


def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Array:
    """Return the cross-correlation."""
    n, o = input.shape[0], weight.shape[0]
    flat_weight = _flat_weight(weight, groups)
    output: Any = None
    for part in _parts(input, weight.shape[2:], stride):
        columns, where = _columns(input[part], weight.shape[2:], stride, padding, dilation, groups)
        product = np.matmul(columns, flat_weight)
        whole = product[0] if groups == 1 else product.transpose(1, 0, 2).reshape(-1, o)
        if output is None:
            output = np.empty((n, o, *where), product.dtype)
        last = np.moveaxis(output[part], 1, -1)
        shaped = whole.reshape(last.shape)
        if bias is None:
            last[...] = shaped
        else:
            np.add(shaped, bias, out=last)
    return output


def convolution_input(
    gradient: Array,
    weight: Array,
    size: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Array:
    """Return the adjoint with respect to the input."""
    n = gradient.shape[0]
    c = weight.shape[1] * groups
    kernel = weight.shape[2:]
    rest = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)])
    if all([s == 1 for s in stride]) and min(rest) >= 0:
        # Without steps it is a convolution itself, with the kernel turned round.
        turned = np.flip(weight, tuple(range(2, weight.ndim)))
        o = weight.shape[0]
        swapped = turned.reshape(groups, o // groups, *weight.shape[1:]).swapaxes(1, 2)
        swapped = swapped.reshape(c, o // groups, *kernel)
        return convolution(gradient, swapped, None, stride, rest, dilation, groups)
    where = gradient.shape[2:]
    rows = np.matmul(_by_group(gradient, groups), _flat_weight(weight, groups).transpose(0, 2, 1))
    windows = rows.reshape(groups, n, *where, *kernel, c // groups)
    wide = [s + 2 * p for s, p in zip(size, padding, strict=True)]
    padded = np.zeros((n, *wide, groups, c // groups), rows.dtype)
    by_group = np.moveaxis(padded, -2, 0)
    everything = (slice(None),) * (2 + len(where))
    for at in itertools.product(*map(range, kernel)):
        place = tuple(
            [
                slice(i * d, i * d + s * (w - 1) + 1, s)
                for i, d, s, w in zip(at, dilation, stride, where, strict=True)
            ]
        )
        by_group[(slice(None), slice(None), *place)] += windows[(*everything, *at)]
    inside = tuple([slice(p, p + s) for p, s in zip(padding, size, strict=True)])
    last = padded[(slice(None), *inside)].reshape(n, *size, c)
    return np.ascontiguousarray(np.moveaxis(last, -1, 1))


def convolution_weight(
    input: Array,
    gradient: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Array:
    """Return the adjoint with respect to the weight."""
    o, c = gradient.shape[1], input.shape[1]
    where = gradient.shape[2:]
    # What lies behind the last window takes no part.
    used = [
        s * (w - 1) + d * (k - 1) + 1
        for w, k, s, d in zip(where, kernel, stride, dilation, strict=True)
    ]
    size = input.shape[2:]
    if any([s + 2 * p != u for s, p, u in zip(size, padding, used, strict=True)]):
        wide = np.zeros((*input.shape[:2], *used), input.dtype)
        kept = [min(s, u - p) for s, u, p in zip(size, used, padding, strict=True)]
        inside: Any = (..., *[slice(p, p + k) for p, k in zip(padding, kept, strict=True)])
        part: Any = (..., *[slice(0, k) for k in kept])
        wide[inside] = input[part]
        input, padding = wide, (0,) * len(size)
    rows: Any = None
    for part in _parts(input, kernel, stride):
        columns, _ = _columns(input[part], kernel, stride, padding, dilation, groups)
        of_part = np.matmul(_by_group(gradient[part], groups).transpose(0, 2, 1), columns)
        rows = of_part if rows is None else np.add(rows, of_part, out=rows)
    weight = rows.reshape(o, *kernel, c // groups)
    return np.ascontiguousarray(np.moveaxis(weight, -1, 1))


# --- pooling ------------------------------------------------------------------------------------


def _inside(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, where: Shape
) -> Iterator[tuple[Shape, tuple[slice, ...], tuple[slice, ...]]]:
    """Yield, for each element of the kernel, which windows it is inside the input for, and where there."""
    for at in itertools.product(*map(range, kernel)):
        windows, places = [], []
        for i, s, st, p, d, w in zip(at, size, stride, padding, dilation, where, strict=True):
            offset = i * d - p
            low = max(0, -(offset // st))  # the first window with offset + st * window >= 0
            high = min(w, (s - 1 - offset) // st + 1)
            if high <= low:
                break
            windows.append(slice(low, high))
            places.append(slice(offset + st * low, offset + st * (high - 1) + 1, st))
        else:
            yield at, tuple(windows), tuple(places)


def _pooled_size(
    size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> Shape:
    result = []
    for s, k, st, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        count = (-(-span // st) if ceil_mode else span // st) + 1
        if ceil_mode and (count - 1) * st >= s + p:
            count -= 1
        result.append(count)
    return tuple(result)


def max_pool(
    input: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    ceil_mode: bool,
) -> tuple[Array, Array]:
    """Return the largest element of each window, and its place in the flattened plane."""
    size = input.shape[2:]
    where = _pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    planes = input.shape[0] * input.shape[1]
    # The planes come last: small ones would make for short loops.
    moved = np.ascontiguousarray(
        input.reshape(planes, *size).transpose(*range(1, input.ndim - 1), 0)
    )
    best = np.full((*where, planes), _lowest(input.dtype), input.dtype)
    inside = list(_inside(size, kernel, stride, padding, dilation, where))
    for _, windows, places in inside:
        np.maximum(best[windows], moved[places], out=best[windows])
    # The first element that equals the maximum: the least of the numbers k | (0 if equal else all ones),
    # which is quicker than writing under a mask.
    number = np.min_scalar_type(math.prod(kernel))
    none = np.iinfo(number).max
    which = np.full(best.shape, none, number)
    numbers = {at: n for n, at in enumerate(itertools.product(*map(range, kernel)))}
    for at, windows, places in inside:
        differs = (moved[places] != best[windows]).astype(number)
        differs *= none
        differs |= number.type(numbers[at])
        np.minimum(which[windows], differs, out=which[windows])
    if input.dtype.kind not in "biu" and (best != best).any():  # NaN: the last counts
        for at, windows, places in inside:
            candidate = moved[places]
            np.copyto(which[windows], numbers[at], where=candidate != candidate)
    index = _flat_places(size, kernel, stride, padding, dilation, where, which)
    shape = (*input.shape[:2], *where)
    back = (best.ndim - 1, *range(best.ndim - 1))
    return (
        np.ascontiguousarray(best.transpose(back)).reshape(shape),
        np.ascontiguousarray(index.transpose(back)).reshape(shape),
    )


def _lowest(dtype: Any) -> Any:
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _flat_places(
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    where: Shape,
    which: Array,
) -> Array:
    """Return the place in the flattened plane of the kernel's element `which` of each window."""
    within = np.zeros(kernel, np.int64)
    first = np.zeros((*where, 1), np.int64)
    for dim, (k, s, p, d, w) in enumerate(
        zip(kernel, stride, padding, dilation, where, strict=True)
    ):
        row = math.prod(size[dim + 1 :])
        within += (np.arange(k) * d * row).reshape(
            [-1 if i == dim else 1 for i in range(len(size))]
        )
        starts = (np.arange(w) * s - p) * row
        first += starts.reshape([-1 if i == dim else 1 for i in range(len(size) + 1)])
    return within.reshape(-1).take(which) + first


def max_pool_gradient(gradient: Array, indices: Array, shape: Shape) -> Array:
    """Return the gradient at the places where the maxima were."""
    n, c, *size = shape
    count = math.prod(size)
    starts = (np.arange(n * c, dtype=np.int64) * count).reshape(n * c, 1)
    flat = (indices.reshape(n * c, math.prod(indices.shape[2:])) + starts).reshape(-1)
    if gradient.dtype == np.float64 and gradient.size:
        total = np.bincount(flat, weights=gradient.reshape(-1), minlength=n * c * count)
        return total.reshape(shape)
    result = np.zeros(n * c * count, gradient.dtype)
    np.add.at(result, flat, gradient.reshape(-1))
    return result.reshape(shape)


# --- normalisation and losses -------------------------------------------------------------------


def standardize(input: Array, dim: Shape, eps: float) -> tuple[Array, Array, Array]:
    """Return the input with mean 0 and variance 1, the means, and one over the deviations."""
    count = math.prod([input.shape[d] for d in dim])
    mean = np.asarray(_add(input, dim, None, None, True) / input.dtype.type(max(count, 1)))
    output = input - mean
    squares = _add(output * output, dim, None, None, True)
    rstd = squares / input.dtype.type(max(count, 1))
    rstd += input.dtype.type(eps)
    rstd = np.asarray(1 / np.sqrt(rstd), input.dtype)
    output *= rstd
    return output, mean, rstd


def standardize_gradient(
    g_output: Array, g_mean: Array, g_rstd: Array, output: Array, rstd: Array, dim: Shape
) -> Array:
    """Return the gradient of :func:`standardize`."""
    count = output.dtype.type(max(math.prod([output.shape[d] for d in dim]), 1))
    along = _add(g_output * output, dim, None, None, True) * rstd
    along += g_rstd * (rstd * rstd)
    along /= count
    constant = _add(g_output, dim, None, None, True) * rstd
    constant -= g_mean
    constant /= count
    result = g_output * rstd
    result -= output * along
    result -= constant
    return result


def negative_log_likelihood(
    input: Array, target: Array, weight: Array | None, ignore_index: int
) -> tuple[Array, Array]:
    """Return what each sample loses, and what it weighs."""
    ignored = target == ignore_index
    some = bool(ignored.any())
    chosen = np.where(ignored, 0, target) if some else target
    classes = input.shape[1]
    if chosen.size and (chosen.min() < 0 or chosen.max() >= classes):
        wrong = chosen[(chosen < 0) | (chosen >= classes)].reshape(-1)[0]
        raise IndexError(f"Target {wrong} is out of bounds: there are {classes} classes")
    if input.ndim == 2:
        picked = input[np.arange(len(chosen)), chosen]
    else:
        picked = np.take_along_axis(input, chosen[:, None], 1)[:, 0]
    if weight is None:
        losses, weights = -picked, np.ones(picked.shape, input.dtype)
    else:
        weights = weight[chosen]
        losses = -picked * weights
    if some:
        losses[ignored] = 0
        weights[ignored] = 0
    return losses, weights


def embedding_rows(weight: Array, indices: Array, *_: Any) -> Array:
    """Return the rows of `weight` that `indices` names."""
    if indices.size and indices.min() < 0:
        raise IndexError(f"index {indices.min()} is out of bounds: there are {len(weight)} rows")
    return weight.take(indices, 0)
