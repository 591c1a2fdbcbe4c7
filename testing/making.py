"""Random tensors for tests."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from tensorplug.core.device.device import CPU, Device
from tensorplug.core.device.dtypes import DType, bfloat16, complex32, iinfo
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.tensor.creation import from_numpy
from tensorplug.core.tensor.tensor import Tensor

_stream = np.random.default_rng(0)


def seed(name: str) -> None:
    """Start the stream of random numbers anew, at a place that `name` decides."""
    global _stream
    _stream = np.random.default_rng(zlib.crc32(name.encode()))


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Device | str | None = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of random numbers, uniform from `low` up to `high`, which is left out.

    Parameters
    ----------
    *shape : int or tuple of int
        The sizes.
    dtype : DType
        The dtype; the bounds are -9 and 9 (10 for integers; from 0 for unsigned ones, and 0 and 2
        for bool) unless given.
    requires_grad : bool
        Whether the tensor requires grad.
    noncontiguous : bool
        Whether neighbouring elements lie apart in memory.
    exclude_zero : bool
        Whether zeros are replaced by ones.
    memory_format : memory_format, optional
        In which order the elements lie.

    Examples
    --------
    >>> import tensorplug as tp
    >>> make_tensor(2, 3, dtype=tp.float32).shape
    Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if noncontiguous and sizes:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    array = _numbers(sizes, dtype, low, high, exclude_zero)
    made = from_numpy(array).to(dtype)
    where = default_device() if device is None else Device(device)
    if where is not CPU:
        made = made.to(where)
    if noncontiguous and sizes:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


_DRAWN_AS = {bfloat16: "float32", complex32: "complex64"}  # NumPy has no such numbers


def _numbers(
    sizes: tuple[int, ...], dtype: DType, low: float | None, high: float | None, exclude_zero: bool
) -> Any:
    inexact = dtype.is_floating_point or dtype.is_complex
    bottom = (-9.0 if dtype.is_signed else 0.0) if low is None else low
    top = (9.0 if inexact else 2.0 if dtype.name == "bool" else 10.0) if high is None else high
    if bottom >= top:
        raise ValueError(f"make_tensor(): low must be less than high, got {low} and {high}")
    array: Any
    if inexact:
        # Halves: the range may be wider than the largest number.
        array = 2 * _stream.uniform(bottom / 2, top / 2, sizes)
        if dtype.is_complex:
            array = array + 2j * _stream.uniform(bottom / 2, top / 2, sizes)
    else:
        least, most = (0, 1) if dtype.name == "bool" else (iinfo(dtype).min, iinfo(dtype).max)
        first = min(max(math.ceil(bottom), least), most)
        last = min(max(math.ceil(top) - 1, first), most)
        array = _stream.integers(first, last + 1, sizes)
    array = np.asarray(array).astype(_DRAWN_AS.get(dtype, dtype.name))
    if exclude_zero:
        array = np.where(array == 0, np.asarray(1).astype(array.dtype), array)
    return np.ascontiguousarray(array).reshape(sizes)
