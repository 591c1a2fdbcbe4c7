"""Samples of images at positions of a grid, and their blocks as columns."""

from __future__ import annotations

from tensorplug.plugin import KernelTable

from .. import vision
from .._dtypes import SINGLE_AND_DOUBLE


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    table.add("grid_sample", vision.grid_sample, dtypes=SINGLE_AND_DOUBLE)
    table.add("grid_sampler_backward", vision.grid_sampler_backward, dtypes=SINGLE_AND_DOUBLE)
    table.add("im2col", vision.im2col, dtypes=SINGLE_AND_DOUBLE)
    table.add("col2im", vision.col2im, dtypes=SINGLE_AND_DOUBLE)
