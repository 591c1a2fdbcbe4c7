"""Random tensors of given sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import (
    ALL_DTYPES,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    bool_,
    float64,
    iinfo,
    int64,
)
from ...device.generator import Generator, chosen_generator
from ...dispatch.keys import DispatchKey, dispatch_key
from ...dispatch.op_registry import composite, handle
from ...dispatch.out_dtypes import cast_error, resizes_silently
from ...errors import type_name, warn
from ...tensor.base import TensorBase
from ...tensor.shapes import Shape, as_shape, broadcast_shapes, check_sizes
from ..comparison import is_within
from ..copying import in_place_of
from ..creation.creation import made, options, sizes_of
from ..rules import cast, number
from .numbers import integer_numbers, normal_numbers, uniform_numbers
from .words import significand_bits

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

_COMPLEX = handle("complex")

__all__ = ["normal", "rand", "randint", "randn"]


def floating(dtype: DType, name: str) -> DType:
    if dtype.category < FLOATING:
        raise NotImplementedError(f"{name}(): not implemented for {dtype.name}; use a float dtype")
    return dtype


def fresh(make: Any, shape: Shape, key: DispatchKey, generator: Generator) -> Any:
    """Return `make`'s numbers of a real or complex dtype."""
    dtype = key.dtype
    if dtype.category < COMPLEX:
        return make(shape, key, generator)
    parts = key.with_dtype(dtype.to_real())
    real = make(shape, parts, generator)
    imaginary = make(shape, parts, generator)
    if make is normal_numbers:  # the variance of both parts together is 1
        real, imaginary = real * math.sqrt(0.5), imaginary * math.sqrt(0.5)
    return cast(_COMPLEX.call(real, imaginary), dtype)


def _made(
    make: Any,
    sizes: tuple[Any, ...],
    size: Any,
    dtype: Any,
    device: Any,
    generator: Generator | None,
    requires_grad: bool,
    name: str,
) -> Tensor:
    chosen, where = options(dtype, device)
    source = chosen_generator(generator, where, name)
    shape = sizes_of(sizes, size, name)
    result = fresh(make, shape, dispatch_key(where, floating(chosen, name)), source)
    return made(result, requires_grad)


@composite(method=False)
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers drawn evenly from [0, 1).

    Parameters
    ----------
    *sizes : int
        The sizes, one by one or as one sequence; also by the keyword `size`.
    generator : Generator, optional
        By default the device's own, which ``tp.manual_seed`` seeds.
    dtype, layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.rand(3, generator=tp.Generator().manual_seed(0))
    tensor([0.3990, 0.8805, 0.7357])
    """
    return _made(uniform_numbers, sizes, size, dtype, device, generator, requires_grad, "rand")


@composite(method=False)
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers drawn from the standard normal distribution.

    The parameters are those of :func:`rand`. Complex ones have a variance of 1/2 in each part.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randn(2, 3).shape
    Size([2, 3])
    """
    return _made(normal_numbers, sizes, size, dtype, device, generator, requires_grad, "randn")


def whole(value: Any, name: str, argument: str) -> int:
    if type(value) is int:
        return value
    read = number(value, name, argument)
    if isinstance(read, float) and read.is_integer():
        return int(read)
    if not isinstance(read, int):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type_name(value)}")
    return int(read)


def _warn_of_gaps(low: int, high: int, dtype: DType, name: str) -> None:
    """Warn if a floating dtype does not represent all whole numbers from `low` to `high` - 1."""
    exact = 1 << (53 if dtype is float64 else significand_bits(dtype))
    for value, argument in ((low, "from"), (high - 1, "to - 1")):
        if not -exact <= value <= exact:
            warn(
                f"{argument} is out of bounds [-{exact}, {exact}] in {name}(): {value}. Due to precision "
                f"limitations {dtype.name} can support discrete uniform distribution only within this range",
                UserWarning,
            )


_RANGES = {
    dtype: (iinfo(dtype).min, iinfo(dtype).max) for dtype in ALL_DTYPES if dtype.category == INTEGER
}
_RANGES[bool_] = (0, 1)


def check_range(low: int, high: int, dtype: DType, name: str) -> None:
    """Raise RuntimeError unless `low` to `high` - 1 is a range that `dtype` holds."""
    if low >= high:
        raise RuntimeError(
            f"{name}(): random_ expects 'from' to be less than 'to', but got from={low} >= "
            f"to={high}"
        )
    if dtype.category == COMPLEX:
        raise NotImplementedError(f"{name}(): not implemented for {dtype.name}")
    if dtype.category == FLOATING:
        _warn_of_gaps(low, high, dtype, name)
        return
    least, most = _RANGES[dtype]
    for value, argument in ((low, "from"), (high - 1, "to - 1")):
        if not least <= value <= most:
            raise RuntimeError(f"{name}(): {argument} is out of bounds for {dtype.name}: {value}")


@composite(method=False)
def randint(
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return whole numbers drawn evenly from `low` to `high` - 1.

    Parameters
    ----------
    *bounds
        ``high, size``, or ``low, high, size``; also by keyword. Low is 0 if left out.
    generator : Generator, optional
        By default the device's own.
    dtype : DType, optional
        By default int64.
    layout, device, requires_grad, pin_memory
        As for :func:`zeros`.

    Raises
    ------
    RuntimeError
        If `low` is not below `high`, or `dtype` does not hold the range.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randint(0, 10, (3,), generator=tp.Generator().manual_seed(0))
    tensor([3, 8, 7])
    """
    given = list(bounds)
    if size is None:
        if not given:
            raise TypeError('randint() missing 1 required argument: "size"')
        size = given.pop()
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {size!r}")
    shape = check_sizes(as_shape((size,), "randint"), "randint")
    chosen, where = options(dtype, device, int64)
    result = integers_between(given, low, high, shape, chosen, where, generator, "randint")
    return made(result, requires_grad)


def integers_between(
    given: list[Any],
    low: Any,
    high: Any,
    shape: Shape,
    dtype: DType,
    device: Device,
    generator: Generator | None,
    name: str,
) -> Any:
    """Return numbers between bounds given by name or, ``high`` or ``low, high``, in their places."""
    bounds = list(given)
    if high is None:
        if not given:
            raise TypeError(f'{name}() missing 1 required argument: "high"')
        high = given.pop()
    if low is None:
        low = given.pop() if given else 0
    if given:
        raise TypeError(f"{name}() takes low and high, got {bounds!r} beside them")
    least, most = whole(low, name, "low"), whole(high, name, "high")
    check_range(least, most, dtype, name)
    source = chosen_generator(generator, device, name)
    return integer_numbers(shape, dispatch_key(device, dtype), source, least, most)


@composite(method=False)
def normal(
    mean: Tensor | Number = 0.0,
    std: Tensor | Number = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers drawn from normal distributions of given means and standard deviations.

    Parameters
    ----------
    mean, std : Tensor or float
        Broadcast against each other; their gradients are zeros.
    size : sequence of int, optional
        The sizes, where both are numbers.
    generator, dtype, layout, device, requires_grad, pin_memory
        As for :func:`rand`; `dtype` and `device` count where both are numbers.

    Raises
    ------
    RuntimeError
        If a standard deviation is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.normal(tp.zeros(2), 1.0).shape
    Size([2])
    """
    tensors: list[Any] = [value for value in (mean, std) if isinstance(value, TensorBase)]
    check_deviation(std, "normal")
    if not tensors:
        if size is None:
            raise TypeError("normal(): two numbers for mean and std need size=")
        chosen, where = options(dtype, device)
        shape = check_sizes(as_shape((size,), "normal"), "normal")
    else:
        if size is not None:
            raise TypeError("normal(): size= goes with two numbers, not with tensors")
        first = tensors[0]
        chosen, where = first.dtype, first.device
        shape = broadcast_shapes(*[tensor._shape for tensor in tensors])
        mean, std = [
            value.detach() if isinstance(value, TensorBase) else value for value in (mean, std)
        ]
    source = chosen_generator(generator, where, "normal")
    key = dispatch_key(where, floating(chosen, "normal"))
    result = fresh(normal_numbers, shape, key, source)
    result = in_place_of((result * std + mean).to(chosen), *tensors)
    return made(result, requires_grad)


def check_deviation(std: Any, name: str) -> None:
    """Raise RuntimeError if a standard deviation is negative."""
    if isinstance(std, TensorBase):
        if std._key.dtype.category == COMPLEX:
            raise RuntimeError(f"{name}(): normal expects standard deviation to be non-complex")
        if std._key.device.type != "cpu" or not math.prod(std._shape):
            return  # elsewhere the question would wait for the device
        if is_within(std, 0.0, math.inf):  # type: ignore[arg-type]
            return
    elif std >= 0:
        return
    if isinstance(std, TensorBase):
        raise RuntimeError(f"{name}(): normal expects all elements of std >= 0.0")
    raise RuntimeError(f"{name}(): normal expects std >= 0.0, but found std {std:g}")


cast_error(normal, error=NotImplementedError)


resizes_silently(rand, randn, randint, normal)
