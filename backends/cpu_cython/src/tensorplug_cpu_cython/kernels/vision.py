"""Samples of images at positions of a grid, and their blocks as columns."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import strided, vision
from .._dtypes import ELEMENTS, NUMBERED
from ..halves import add_floats


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"):
        table.add(name, getattr(strided, name), dtypes=NUMBERED)
    add_floats(table, "grid_sample", vision.grid_sample)
    add_floats(table, "grid_sampler_backward", vision.grid_sampler_backward)
    add_floats(table, "col2im", vision.col2im)
    table.add("im2col", vision.im2col, dtypes=[dtype for dtype in ELEMENTS if dtype.itemsize <= 8])
