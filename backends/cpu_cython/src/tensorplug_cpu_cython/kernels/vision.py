"""Samples of images at positions of a grid, and their blocks as columns."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import KernelTable

from .. import pointwise, vision
from .._dtypes import NUMBERED, SINGLE_AND_DOUBLE
from ..halves import add_floats


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for function in (pixel_shuffle, pixel_unshuffle, channel_shuffle):
        table.add(function.__name__, function, dtypes=NUMBERED)
    add_floats(table, "grid_sample", vision.grid_sample)
    add_floats(table, "grid_sampler_backward", vision.grid_sampler_backward)
    add_floats(table, "col2im", vision.col2im)
    table.add("im2col", vision.im2col, dtypes=SINGLE_AND_DOUBLE)


def pixel_shuffle(input: Any, r: int) -> Any:
    """Return (*, C r², H, W) rearranged as (*, C, H r, W r)."""
    *leading, channels, h, w = input.shape
    count = channels // (r * r)
    parts = input.reshape(math.prod(leading), count, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return pointwise.clone(parts).reshape(*leading, count, h * r, w * r)


def pixel_unshuffle(input: Any, r: int) -> Any:
    """Return (*, C, H r, W r) rearranged as (*, C r², H, W)."""
    *leading, channels, h, w = input.shape
    parts = input.reshape(math.prod(leading), channels, h // r, r, w // r, r).transpose(
        0, 1, 3, 5, 2, 4
    )
    return pointwise.clone(parts).reshape(*leading, channels * r * r, h // r, w // r)


def channel_shuffle(input: Any, groups: int) -> Any:
    """Return the channels of (N, C, *) in turn from each of `groups` groups."""
    n, channels, *size = input.shape
    parts = input.reshape(n, groups, channels // groups, *size).swapaxes(1, 2)
    return pointwise.clone(parts).reshape(input.shape)
