"""Random tensors for tests."""

from __future__ import annotations

import math
import warnings
import zlib
from typing import Any

import numpy as np

from tensorplug.core.device.device import CPU, Device
from tensorplug.core.device.dtypes import DType, bfloat16, complex32, finfo, iinfo
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
        for bool) unless given. They end where its finite numbers do.
    requires_grad : bool
        Whether the tensor requires grad.
    noncontiguous : bool
        Whether neighbouring elements lie apart in memory, where there are several.
    exclude_zero : bool
        Whether zeros are replaced by ones, in floating point by the least normal number.
    memory_format : memory_format, optional
        In which order the elements lie.

    Raises
    ------
    ValueError
        If `low` is not less than `high`, one of them is NaN, or the dtype has no number between them; if
        an integer tensor is to require grad; if both `noncontiguous` and `memory_format` are given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> make_tensor(2, 3, dtype=tp.float32).shape
    Size([2, 3])
    """
    if not isinstance(dtype, DType):
        raise TypeError(f"make_tensor(): dtype must be a dtype, not {dtype!r}")
    if not isinstance(requires_grad, bool):
        raise RuntimeError("requires_grad must be a bool")  # as in torch
    _check(dtype, requires_grad, noncontiguous, memory_format)
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    array = _numbers(sizes, dtype, *_bounds(dtype, low, high), exclude_zero)
    made = from_numpy(array).to(dtype)
    where = default_device() if device is None else Device(device)
    if where is not CPU:
        made = made.to(where)
    if noncontiguous:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


_DRAWN_AS = {bfloat16: "float32", complex32: "complex64"}  # NumPy has no such numbers


def _check(dtype: DType, requires_grad: bool, noncontiguous: bool, memory_format: Any) -> None:
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor(): The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "make_tensor(): `requires_grad=True` is not supported for boolean and integral dtypes, but "
            f"got {dtype=}"
        )


def _bounds(dtype: DType, low: float | None, high: float | None) -> tuple[float, float]:
    """Return between what numbers are drawn, within what the dtype can hold."""
    inexact = dtype.is_floating_point or dtype.is_complex
    least: float
    beyond: float
    if dtype.name == "bool":
        least, beyond = 0, 2
    elif inexact:
        least, beyond = finfo(dtype).min, finfo(dtype).max
    else:
        least, beyond = iinfo(dtype).min, iinfo(dtype).max + 1
    if low is None:
        low = -9.0 if dtype.is_signed else 0.0
    if high is None:
        high = 9.0 if inexact else 2.0 if dtype.name == "bool" else 10.0
    if low != low or high != high:  # math.isnan takes no huge ints
        raise ValueError(
            f"make_tensor(): `low` and `high` cannot be NaN, but got {low=} and {high=}"
        )
    if low == high and inexact:
        warnings.warn(
            "make_tensor(): Passing `low==high` for floating or complex types is deprecated. Use `full` "
            "instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"make_tensor(): `low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= beyond:
        raise ValueError(
            f"make_tensor(): The value interval specified by `low` and `high` is [{low}, {high}), but "
            f"{dtype} only supports [{least}, {beyond})"
        )
    return min(max(low, least), beyond), min(max(high, least), beyond)


def _numbers(
    sizes: tuple[int, ...], dtype: DType, bottom: float, top: float, exclude_zero: bool
) -> Any:
    array: Any
    one: complex = 1
    if dtype.is_floating_point or dtype.is_complex:
        one = finfo(dtype).tiny
        array = _uniform(sizes, dtype, bottom, top)
        if dtype.is_complex:
            array = array + 1j * _uniform(sizes, dtype, bottom, top)
            one *= 1 + 1j
    else:
        first, last = math.ceil(bottom), math.ceil(top) - 1
        array = _stream.integers(first, max(first, last), sizes, _KINDS[dtype.is_signed], True)
    array = np.asarray(array).astype(_DRAWN_AS.get(dtype, dtype.name))
    if exclude_zero:
        array = np.where(array == 0, np.asarray(one).astype(array.dtype), array)
    return np.ascontiguousarray(array).reshape(sizes)


_KINDS = {True: np.int64, False: np.uint64}


def _uniform(sizes: tuple[int, ...], dtype: DType, bottom: float, top: float) -> Any:
    # Halves: the range may be wider than the largest number.
    drawn = 2 * _stream.uniform(bottom / 2, top / 2, sizes)
    # No number is to be rounded up to the bound that is left out.
    return np.minimum(drawn, max(bottom, top - abs(top) * finfo(dtype).eps))
