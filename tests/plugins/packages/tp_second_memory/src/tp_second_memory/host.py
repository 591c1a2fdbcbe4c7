"""Between the vault and NumPy, which carries data in and out, and calculates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import contiguous_strides, dtype_named

from .memory import DTYPES, Store, VaultArray, packed

NATIVES = {dtype: np.dtype(dtype.name) for dtype in DTYPES}


def to_host(array: VaultArray) -> Any:
    """Return a NumPy array with the contents of an array."""
    data = packed(array.dtype, array.values())
    return np.frombuffer(data, NATIVES[array.dtype]).reshape(array.shape)


def from_host(array: Any) -> VaultArray:
    """Return a new array with the contents of a NumPy array or scalar."""
    array = np.asarray(array)
    shape = tuple(array.shape)
    store = Store(bytearray(array.tobytes()))
    return VaultArray(store, shape, contiguous_strides(shape), 0, dtype_named(array.dtype.name))


def calculated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that copies its arguments out, calls `function`, and copies the results in."""

    @functools.wraps(function)
    def kernel(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            results = function(*map(_out, values))
        return tuple(map(from_host, results)) if isinstance(results, tuple) else from_host(results)

    return kernel


def _out(value: Any) -> Any:
    if isinstance(value, VaultArray):
        return to_host(value)
    return list(map(_out, value)) if isinstance(value, list) else value
