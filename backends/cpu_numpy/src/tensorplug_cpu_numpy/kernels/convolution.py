"""Convolution and its two adjoints, by matrix products over windows.

The windows of a part of the input are spelled out as the columns of a matrix, so few at a time that they stay
in the cache, and multiplied by the weights as rows. A convolution of 1×1 takes the input as it is. Where
every channel is convolved by itself there is no matrix: the shifted inputs are multiplied and added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, Shape, dtype_named
from tensorplug.plugin.array_kernels import ArrayNamespace

from ._formats import laid_out

Array = np.ndarray[Any, Any]
Indexed = Any  # an array that takes tuples of slices and ints, which NumPy's types don't let in

# The elements of columns that are spelled out at a time: about a core's second cache.
_PART = 1 << 18
_FEW = 1 << 14  # of fewer, one product is faster than a call for each place of the kernel
_SHORT = (
    512  # samples with fewer positions are put side by side, for products that are worth a call
)


def build(namespace: ArrayNamespace, table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    halves = (dtype_named("float16"), dtype_named("bfloat16"))
    for function in (convolution, convolution_input, convolution_weight):
        table.add(function.__name__, function)
        table.add(function.__name__, namespace.through_float32(function), dtypes=halves)


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
    windows = _windows(_padded(input, padding), weight.shape[2:], stride, dilation)
    where = windows.shape[2 + len(padding) :]
    output = np.empty((n, o, *where), input.dtype)
    if weight.shape[1] == 1 and groups == o and windows.size > _FEW:
        _by_channel(windows, weight, output)
    else:
        rows = weight.reshape(groups, o // groups, math.prod(weight.shape[1:]))
        for samples, first in _parts(windows, len(where)):
            columns = _columns(_part(windows, samples, first, len(where)), groups, len(where))
            target = _part(output, samples, first, len(where))
            if len(target) == 1:
                np.matmul(rows, columns, out=target.reshape(*rows.shape[:2], columns.shape[2]))
            else:
                product = np.matmul(rows, columns).reshape(o, len(target), *target.shape[2:])
                target[...] = product.swapaxes(0, 1)
    if bias is not None:
        output += bias.reshape(-1, *[1] * len(where))
    return laid_out(output, input)


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
    n, o = gradient.shape[:2]
    c, kernel = weight.shape[1] * groups, weight.shape[2:]
    rest = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)])
    if all([s == 1 for s in stride]) and min(rest) >= 0:
        # Without steps it is a convolution itself, with the kernel turned round.
        turned = np.flip(weight, tuple(range(2, weight.ndim)))
        swapped = turned.reshape(groups, o // groups, *weight.shape[1:]).swapaxes(1, 2)
        swapped = swapped.reshape(c, o // groups, *kernel)
        found = convolution(gradient, swapped, None, stride, rest, dilation, groups)
        return laid_out(found, gradient)
    where = gradient.shape[2:]
    wide = [s + 2 * p for s, p in zip(size, padding, strict=True)]
    padded: Indexed = np.zeros((n, c, *wide), gradient.dtype)
    windows = _windows(padded, kernel, stride, dilation, where)
    places = [(slice(None), *at) for at in itertools.product(*map(range, kernel))]
    rows = weight.reshape(groups, o // groups, math.prod(weight.shape[1:])).swapaxes(1, 2)
    for sample in range(n):
        by_group = gradient[sample].reshape(groups, o // groups, math.prod(where))
        # Windows overlap, so one place in each of them is served at a time.
        if c == groups == o:
            for number, place in enumerate(places):
                term = np.multiply(by_group, rows[:, number : number + 1])
                windows[sample][place] += term.reshape(c, *where)
        else:
            columns = np.matmul(rows, by_group).reshape(c, *kernel, *where)
            for place in places:
                windows[sample][place] += columns[place]
    inside = tuple([slice(p, p + s) for p, s in zip(padding, size, strict=True)])
    return laid_out(padded[(..., *inside)], gradient)


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
    windows = _windows(_padded(input, padding), kernel, stride, dilation, where)
    if c == groups == o and windows.size > _FEW:
        weight: Indexed = np.empty((o, 1, *kernel), input.dtype)
        letters = "nc" + "xyz"[: len(kernel)]
        for at in itertools.product(*map(range, kernel)):
            weight[(slice(None), 0, *at)] = np.einsum(
                f"{letters},{letters}->c", windows[(slice(None), slice(None), *at)], gradient
            )
        return weight
    width = (c // groups) * math.prod(kernel)
    rows = np.zeros((groups, o // groups, width), input.dtype)
    for samples, first in _parts(windows, len(where)):
        columns = _columns(_part(windows, samples, first, len(where)), groups, len(where))
        taken = _part(gradient, samples, first, len(where)).swapaxes(0, 1)
        rows += np.matmul(
            taken.reshape(groups, o // groups, columns.shape[2]), columns.swapaxes(1, 2)
        )
    return rows.reshape(o, c // groups, *kernel)


# --- windows --------------------------------------------------------------------------------------


def _padded(input: Array, padding: Shape) -> Array:
    """Return (N, C, *size) with zeros around it."""
    if not any(padding):
        return input
    size = input.shape[2:]
    wide = [s + 2 * p for s, p in zip(size, padding, strict=True)]
    padded: Indexed = np.zeros((*input.shape[:2], *wide), input.dtype)
    padded[(..., *[slice(p, p + s) for p, s in zip(padding, size, strict=True)])] = input
    return padded


def _windows(
    padded: Array, kernel: Shape, stride: Shape, dilation: Shape, where: Shape | None = None
) -> Indexed:
    """Return a view of all windows, or of the first ones, as (N, C, *kernel, *positions)."""
    if where is None:
        spans = zip(padded.shape[2:], kernel, stride, dilation, strict=True)
        where = tuple([(w - d * (k - 1) - 1) // s + 1 for w, k, s, d in spans])
    first, steps = padded.strides[:2], padded.strides[2:]
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:2], *kernel, *where),
        (
            *first,
            *[a * d for a, d in zip(steps, dilation, strict=True)],
            *[a * s for a, s in zip(steps, stride, strict=True)],
        ),
    )


def _parts(windows: Array, dims: int) -> Iterator[tuple[slice, slice]]:
    """Yield which samples, and which of the first of the positions' `dims`, are spelled out together."""
    n = windows.shape[0]
    where = windows.shape[-dims:]
    positions, width = math.prod(where), math.prod(windows.shape[1:-dims])
    together = max(_PART // max(width, 1), _SHORT)  # as many positions
    if positions < together:
        count = together // max(positions, 1)
        for start in range(0, n, count):
            yield slice(start, start + count), slice(None)
    else:
        count = max(1, together * where[0] // positions)
        for sample in range(n):
            for start in range(0, where[0], count):
                yield slice(sample, sample + 1), slice(start, start + count)


def _part(array: Indexed, samples: slice, first: slice, dims: int) -> Array:
    """Return some samples, and some of the first of the last `dims` dimensions, of an array."""
    return array[(samples, ..., first, *[slice(None)] * (dims - 1))]


def _columns(windows: Array, groups: int, dims: int) -> Array:
    """Return the windows as (groups, C/groups * prod(kernel), N * positions)."""
    c = windows.shape[1]
    width = math.prod(windows.shape[2:-dims]) * (c // groups)
    columns = np.moveaxis(windows, 0, -1 - dims)
    return columns.reshape(groups, width, math.prod(columns.shape[-1 - dims :]))


def _by_channel(windows: Indexed, weight: Array, output: Indexed) -> None:
    """Write the convolution of each channel by itself into `output`, without columns."""
    n, c = output.shape[:2]
    kernel, where = weight.shape[2:], output.shape[2:]
    count = max(1, _PART // 4 // max(math.prod(where), 1))  # as many channels as stay in the cache
    factors: Indexed = weight.reshape(*weight.shape, *[1] * len(where))
    product = np.empty((count, *where), output.dtype)
    for sample, start in itertools.product(range(n), range(0, c, count)):
        channels = slice(start, start + count)
        target = output[sample, channels]
        target[...] = 0
        for at in itertools.product(*map(range, kernel)):
            shifted = windows[(sample, channels, *at)]
            term = product[: len(shifted)]
            np.multiply(shifted, factors[(channels, 0, *at)], out=term)
            target += term
