"""Images resampled to another size."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.plugin import KernelTable, Shape, dtype_named

from .. import pooling_average, upsampling
from ..halves import add_floats

Factors = tuple[float, ...]


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    add_floats(table, "interpolate", interpolate)
    table.add("interpolate", interpolate, dtypes=[dtype_named("uint8")])
    add_floats(table, "interpolate_backward", interpolate_backward)


def interpolate(
    input: Any,
    size: Shape | None,
    scale_factor: Factors | None,
    mode: str,
    align_corners: bool | None,
    antialias: bool,
) -> Any:
    """Return images resampled to another size."""
    if size is None:
        assert scale_factor is not None
        size = tuple(
            [math.floor(n * f) for n, f in zip(input.shape[2:], scale_factor, strict=True)]
        )
    if mode == "area":
        return pooling_average.adaptive_avg_pool(input, tuple(size))
    return upsampling.interpolate(
        input, tuple(size), _plain(scale_factor), mode, bool(align_corners), antialias
    )


def interpolate_backward(
    grad_output: Any,
    input_size: Shape,
    _: Shape | None,
    scale_factor: Factors | None,
    mode: str,
    align_corners: bool | None,
    antialias: bool,
) -> Any:
    """Return the gradient of the images."""
    if mode == "area":
        return pooling_average.adaptive_avg_pool_backward(grad_output, tuple(input_size))
    return upsampling.interpolate_backward(
        grad_output,
        tuple(input_size),
        _plain(scale_factor),
        mode,
        bool(align_corners),
        antialias,
    )


def _plain(factors: Factors | None) -> Factors | None:
    """Return factors as a tuple itself, which compiled code takes, not of a class derived from it."""
    return None if factors is None else tuple(factors)
