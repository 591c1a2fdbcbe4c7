"""In which order of memory results are: row by row, or, of images, the channels of a place together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin.array_kernels.joining import lies_channels_last

Array = np.ndarray[Any, Any]


def channels_last(image: Array) -> bool:
    """Return whether (N, C, *spatial) lies in memory with the channels of a place beside each other.

    Images of two or three dimensions may have gaps, as in torch.
    """
    if image.flags.c_contiguous:
        return False
    return np.moveaxis(image, 1, -1).flags.c_contiguous or lies_channels_last(image)


def laid_out(result: Array, image: Array) -> Array:
    """Return a result channels last if an image is, else row by row."""
    if channels_last(image):
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(result, 1, -1)), -1, 1)
    return np.ascontiguousarray(result)
