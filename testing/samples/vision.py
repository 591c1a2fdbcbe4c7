"""Records of operations on images."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64

from ..records import OpRecord, Sample
from ._differences import ROUGH, by_differences
from ._networks import ORDER, SUMS


def _shuffle_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 8, 3, 2), 2)
    yield Sample(make(9, 2, 1), 3)
    yield Sample(make(0, 4, 2, 2), 2)


def _shuffle(a: Any, r: int) -> Any:
    *lead, c, h, w = a.shape
    result = np.empty((*lead, c // (r * r), h * r, w * r), a.dtype)
    for i, j in itertools.product(range(r), range(r)):
        result[..., i::r, j::r] = a[..., i * r + j :: r * r, :, :]
    return result


def _unshuffle_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 2, 6, 4), 2)
    yield Sample(make(1, 3, 6), 3)
    yield Sample(make(0, 1, 2, 2), 2)


def _unshuffle(a: Any, r: int) -> Any:
    *lead, c, h, w = a.shape
    result = np.empty((*lead, c * r * r, h // r, w // r), a.dtype)
    for i, j in itertools.product(range(r), range(r)):
        result[..., i * r + j :: r * r, :, :] = a[..., i::r, j::r]
    return result


def _channels_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 6, 2, 2), 3)
    yield Sample(make(1, 4, 3), 2)
    yield Sample(make(0, 4, 2), 2)


def _channels(a: Any, groups: int) -> Any:
    c = a.shape[1]
    return a[:, [i % groups * (c // groups) + i // groups for i in range(c)]]


def _affine_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 2, 3), (2, 1, 3, 4))
    yield Sample(make(2, 2, 3), (2, 1, 3, 1), True)
    yield Sample(make(1, 3, 4), (1, 1, 2, 3, 2), False)


def _affine(theta: Any, size: Any, align: bool = False) -> Any:
    axes = []
    for n in size[2:]:
        axis = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(axis if align or n == 1 else axis * (n - 1) / n)
    grid = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*grid[::-1], np.ones(size[2:])], -1)
    return np.einsum("...j,nij->n...i", base, theta)


def _grid_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for align in (False, True):
        # Within a cell: at its edges the derivative jumps.
        yield Sample(
            make(1, 2, 2, 2), make(1, 3, 2, 2, low=0.05, high=0.3), "bilinear", "zeros", align
        )
    yield Sample(make(1, 1, 2, 2, 2), make(1, 2, 1, 2, 3, low=0.05, high=0.3))
    yield Sample(make(0, 1, 2, 2), make(0, 2, 2, 2, low=0.05, high=0.3))


def _grid(
    a: Any, grid: Any, mode: str = "bilinear", padding: str = "zeros", align: bool = False
) -> Any:
    sizes = a.shape[2:]
    result = np.zeros((*a.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        taps = []
        for x, n in zip(grid[at][::-1], sizes, strict=True):
            place = (x + 1) / 2 * (n - 1) if align else ((x + 1) * n - 1) / 2
            low = int(np.floor(place))
            rest = place - low
            taps.append([(i, f) for i, f in ((low, 1 - rest), (low + 1, rest)) if 0 <= i < n])
        for chosen in itertools.product(*taps):
            place = tuple(i for i, _ in chosen)
            result[(at[0], slice(None), *at[1:])] += (
                np.prod([f for _, f in chosen]) * a[(at[0], slice(None), *place)]
            )
    return result


def _sampler_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for align in (False, True):
        grid = make(1, 3, 2, 2, low=0.05, high=0.3)
        yield Sample(make(1, 2, 3, 2), make(1, 2, 2, 2), grid, "bilinear", "zeros", align)
    volume, grid = make(1, 1, 2, 2, 2), make(1, 2, 1, 2, 3, low=0.05, high=0.3)
    yield Sample(make(1, 1, 2, 1, 2), volume, grid, "bilinear", "zeros", False)
    image, grid = make(0, 1, 2, 2), make(0, 2, 2, 2, low=0.05, high=0.3)
    yield Sample(make(0, 1, 2, 2), image, grid, "bilinear", "zeros", False)


def _record(name: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    options = {"torch": f"nn.functional.{name}", **options}
    return OpRecord(name, samples, reference, FLOATS, **options)


RECORDS = [
    _record("pixel_shuffle", _shuffle_samples, _shuffle),
    # torch returns an empty image as it is.
    _record("pixel_unshuffle", _unshuffle_samples, _unshuffle, torch=""),
    _record("channel_shuffle", _channels_samples, _channels),
    _record(
        "affine_grid",
        _affine_samples,
        _affine,
        atol=SUMS,
        rtol=ORDER,
        never_empty="no size may be zero",
    ),
    OpRecord(
        "grid_sampler_backward",
        _sampler_samples,
        by_differences(_grid, 0, 1),
        (float32, float64),
        atol=ROUGH,
        torch="",
    ),
    _record("grid_sample", _grid_samples, _grid, atol=SUMS, rtol=ORDER),
]
