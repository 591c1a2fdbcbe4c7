"""Half precision by kernels of float32, between conversions by compiled loops: NumPy's take longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import DType, KernelTable

from . import pointwise
from ._dtypes import FLOATS, NATIVES, SINGLE_AND_DOUBLE

HALVES: tuple[DType, ...] = tuple([dtype for dtype in FLOATS if dtype.itemsize == 2])

_SINGLE = np.dtype(np.float32)
_NATIVE = tuple([NATIVES[dtype] for dtype in HALVES])


def in_single(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return what computes in float32, and rounds the results."""

    def run(*arguments: Any) -> Any:
        found: list[Any] = []
        made = kernel(*[_widened(value, found) for value in arguments])
        if isinstance(made, tuple):
            return tuple([_rounded(array, found[0]) for array in made])
        return _rounded(made, found[0])

    return run


def in_single_writing(kernel: Callable[..., None], written: int) -> Callable[..., None]:
    """Return what does the same with a kernel that changes its first arrays, `written` of them."""

    def run(*arguments: Any) -> None:
        found: list[Any] = []
        wide = [_widened(value, found) for value in arguments]
        kernel(*wide)
        for array, value in zip(arguments[:written], wide, strict=False):
            pointwise.copy(array, value, array)

    return run


def _widened(value: Any, found: list[Any]) -> Any:
    """Return an argument with arrays of half precision in float32, and note the dtype of these."""
    if isinstance(value, np.ndarray) and value.dtype in _NATIVE:
        found.append(value.dtype)
        return pointwise.cast(value, _SINGLE)
    if isinstance(value, (list, tuple)):
        return type(value)([_widened(item, found) for item in value])
    return value


def _rounded(array: Any, half: Any) -> Any:
    return pointwise.cast(np.asarray(array), half) if array.dtype == _SINGLE else array


def add_floats(table: KernelTable, op: str, kernel: Callable[..., Any]) -> None:
    """Add a kernel of float32 and float64, and what computes half precision by it."""
    table.add(op, kernel, dtypes=SINGLE_AND_DOUBLE)
    table.add(op, in_single(kernel), dtypes=HALVES)
