"""In place of ``cupy.cuda.thrust``, whose compiled kernels only a GPU can run."""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path

import numpy as np
from cupy.cuda import common, get_current_stream

available = True
_library = ctypes.CDLL(str(Path(os.environ["HOSTED_FOLDER"]) / "libthrust.so"))


def _call(name, dtype, data, order, rows, length):
    dtype = np.dtype(dtype)
    common._get_dtype_id(dtype)  # raises for what Thrust does not sort
    failed = getattr(_library, name)(
        ctypes.c_void_p(get_current_stream().ptr), ctypes.c_char(dtype.char.encode()), ctypes.c_void_p(data),
        ctypes.c_void_p(order), ctypes.c_size_t(rows), ctypes.c_size_t(length),
    )  # fmt: skip
    assert not failed, dtype


def sort(dtype, data, keys, shape):
    """Sort along the last dimension."""
    _call("hosted_sort", dtype, data, None, math.prod(shape[:-1]), shape[-1])


def argsort(dtype, order, data, keys, shape):
    """Sort along the last dimension, and write where the elements came from."""
    _call("hosted_sort", dtype, data, order, math.prod(shape[:-1]), shape[-1])


def lexsort(dtype, order, keys, count, length):
    """Write the order by several keys, of which the last counts most."""
    _call("hosted_lexsort", dtype, keys, order, count, length)
