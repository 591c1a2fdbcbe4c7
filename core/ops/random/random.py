"""Random numbers.

One primitive gives random bits by counter; everything else is arithmetic on them, so a seed gives
the same integers and uniform numbers on every device, and normal ones up to the rounding of
logarithm and cosine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    DType,
    Number,
    bfloat16,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int64,
)
from ...device.generator import Generator, chosen_generator
from ...dispatch.execution import kernel_of
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_variants import cast_error
from ...dispatch.state import dispatch_state
from ...tensor.base import TensorBase, new_tensor
from ...tensor.shapes import Shape, as_shape, broadcast_shapes, check_sizes
from ..copying import in_place_of
from ..creation import creation
from ..creation.creation import empty
from ..rules import number

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["normal", "philox_bits", "rand", "randint", "randn", "randperm"]


# How many bits of a uniform number an element's significand holds; at most a word's.
_BITS = {float32: 24, float16: 11, bfloat16: 8}


def significand_bits(dtype: DType) -> int:
    """Return how many bits of a uniform number an element holds.

    Raises
    ------
    NotImplementedError
        For floats of eight bits.
    """
    if dtype not in _BITS:
        raise NotImplementedError(f"no random numbers are made in {dtype.name}; convert with .to()")
    return _BITS[dtype]


@primitive("shape, seed, offset", random=True, method=False)
def philox_bits(shape: Shape, seed: int, offset: int, device: Device) -> Spec:
    """Return random 32-bit words as int64, from 0 to 2³² - 1, by counter.

    Parameters
    ----------
    shape : tuple of int
        The sizes. The element at place *i*, row by row, is word *i* mod 4 of Philox 4x32-10 with
        the key `seed` and the counter `offset` + *i* // 4 (lower words first).
    seed, offset : int
        Key (64 bits) and first counter.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.philox_bits((4,), 0, 0, tp.device("cpu"))
    tensor([1713891541, 3781805453, 3159862348, 2600524760])
    """
    return Spec((shape, seed, offset), shape, int64, key=int64, device=device)


def bits(shape: Shape, device: Device, generator: Generator) -> Any:
    """Return the next random words of a generator."""
    seed, offset = generator.take(math.prod(shape))
    key = dispatch_key(device, int64)
    if dispatch_state.layers_active or dispatch_state.verify or key.is_meta:
        return philox_bits(shape, seed, offset, device)
    # What the call would come to: there is nothing to record, convert or look up.
    op = philox_bits.op  # type: ignore[attr-defined]
    output = new_tensor(kernel_of(op, key)(shape, seed, offset), key, shape)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


# More numbers than these are made in pieces, as what they are made of takes several times their memory.
_PIECE = 1 << 22


def _in_pieces(
    function: Any, shape: Shape, dtype: DType, device: Device, generator: Generator
) -> Any:
    count = math.prod(shape)
    result = empty((count,), dtype=dtype, device=device)
    for start in range(0, count, _PIECE):
        size = min(_PIECE, count - start)
        result[start : start + size] = function((size,), dtype, device, generator)
    return result.reshape(shape)


def uniform_numbers(shape: Shape, dtype: DType, device: Device, generator: Generator) -> Any:
    """Return numbers from 0 to below 1, on the grid that `dtype` represents throughout."""
    if math.prod(shape) > _PIECE:
        return _in_pieces(uniform_numbers, shape, dtype, device, generator)
    if dtype is float64:
        high = bits(shape, device, generator) * (1 << 21)
        low = bits(shape, device, generator) >> 11
        return (high + low).to(float64) * 2.0**-53
    significand_bits(dtype)
    return uniform_of_words(bits(shape, device, generator), dtype)


# What is made of random words are ops, so that calls of the same shape replay them.


@composite(method=False)
def uniform_of_words(words: Tensor, dtype: DType) -> Tensor:
    """Return numbers from 0 to below 1, each of as many bits of a random word as `dtype` holds.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.uniform_of_words(tp.tensor([1 << 31]), tp.float32)
    tensor([0.5000])
    """
    kept = significand_bits(dtype)
    return ((words >> (32 - kept)).to(float32) * 2.0**-kept).to(dtype)


@composite(method=False)
def normal_of_words(radius: Tensor, angle: Tensor, dtype: DType) -> Tensor:
    """Return normal numbers of pairs of random words (Box and Muller 1958).

    All 32 bits count in the radius: they decide how far out the tails reach.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.normal_of_words(tp.tensor([(1 << 31) - 1]), tp.tensor([0]), tp.float32)
    tensor([1.1774])
    """
    first: Any = (radius + 1).to(float32) * 2.0**-32
    second: Any = (angle >> 8).to(float32) * 2.0**-24
    return _box_muller(first, second).to(dtype)


def _box_muller(radius: Any, angle: Any) -> Any:
    return (radius.log() * -2.0).sqrt() * (angle * (2.0 * math.pi)).cos()


def normal_numbers(shape: Shape, dtype: DType, device: Device, generator: Generator) -> Any:
    """Return numbers of the standard normal distribution (Box and Muller 1958)."""
    if math.prod(shape) > _PIECE:
        return _in_pieces(normal_numbers, shape, dtype, device, generator)
    if dtype is float64:
        radius = 1.0 - uniform_numbers(shape, float64, device, generator)
        return _box_muller(radius, uniform_numbers(shape, float64, device, generator))
    radius = bits(shape, device, generator)
    return normal_of_words(radius, bits(shape, device, generator), dtype)


def integer_numbers(
    shape: Shape, low: int, high: int, dtype: DType, device: Device, generator: Generator
) -> Any:
    """Return whole numbers from `low` to `high` - 1 as `dtype`."""
    span = high - low
    if span <= 1 << 16:
        numbers = (bits(shape, device, generator) * span) >> 32
    else:
        upper = bits(shape, device, generator)
        lower = bits(shape, device, generator)
        if span <= 1 << 63:
            numbers = (upper & 0x7FFFFFFF) * (1 << 32) + lower
            if span < 1 << 63:
                numbers = numbers % span
        else:
            # 64 bits, which wrap around into the sign as C's integers do.
            numbers = ((upper ^ 0x80000000) - 0x80000000) * (1 << 32) + lower
            if span < 1 << 64:
                limit = span - (1 << 64)
                numbers = ((numbers < limit) | (numbers >= 0)).to(int64) * numbers + (
                    (numbers >= limit) & (numbers < 0)
                ).to(int64) * (numbers - limit)
    return (numbers + low if low else numbers).to(dtype)


def _floating(dtype: DType, name: str) -> DType:
    if dtype.category < FLOATING:
        raise NotImplementedError(f"{name}(): not implemented for {dtype.name}; use a float dtype")
    return dtype


def _fresh(make: Any, shape: Shape, dtype: DType, device: Device, generator: Generator) -> Any:
    """Return `make`'s numbers of a real or complex dtype."""
    if dtype.category < COMPLEX:
        return make(shape, dtype, device, generator)
    real = make(shape, dtype.to_real(), device, generator)
    imaginary = make(shape, dtype.to_real(), device, generator)
    if make is normal_numbers:  # the variance of both parts together is 1
        real, imaginary = real * math.sqrt(0.5), imaginary * math.sqrt(0.5)
    return (real + imaginary * 1j).to(dtype)


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
    chosen, where = creation.options(dtype, device)
    source = chosen_generator(generator, where, name)
    shape = creation.sizes_of(sizes, size, name)
    result = _fresh(make, shape, _floating(chosen, name), where, source)
    return creation.made(result, requires_grad)


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


def _whole(value: Any, name: str, argument: str) -> int:
    read = number(value, name, argument)
    if isinstance(read, float) and read.is_integer():
        return int(read)
    if not isinstance(read, int):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}")
    return int(read)


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
        return
    least, most = (0, 1) if dtype.category == BOOL else (iinfo(dtype).min, iinfo(dtype).max)
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
    if high is None:
        if not given:
            raise TypeError('randint() missing 1 required argument: "high"')
        high = given.pop()
    if low is None:
        low = given.pop() if given else 0
    if given:
        raise TypeError(f"randint() takes low, high and size, got {bounds!r} beside them")
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {size!r}")
    least, most = _whole(low, "randint", "low"), _whole(high, "randint", "high")
    chosen, where = creation.options(dtype, device, int64)
    check_range(least, most, chosen, "randint")
    source = chosen_generator(generator, where, "randint")
    shape = check_sizes(as_shape((size,), "randint"), "randint")
    result = integer_numbers(shape, least, most, chosen, where, source)
    return creation.made(result, requires_grad)


@composite(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType | type | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the numbers from 0 to `n` - 1 in random order.

    Parameters
    ----------
    n : int
        How many.
    generator, dtype, layout, device, requires_grad, pin_memory
        As for :func:`randint`.

    Raises
    ------
    RuntimeError
        If `n` is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    count = _whole(n, "randperm", "n")
    if count < 0:
        raise RuntimeError(f"randperm(): n must be non-negative, got {n}")
    chosen, where = creation.options(dtype, device, int64)
    if chosen.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"randperm(): not implemented for {chosen.name}")
    # The last number, of those that the dtype tells apart.
    most = iinfo(chosen).max if chosen.category == INTEGER else int(2 / finfo(chosen).eps)
    if count - 1 > most:
        raise RuntimeError(
            f"randperm(): n is too large for result tensor type: {n} numbers do not fit into {chosen.name}"
        )
    source = chosen_generator(generator, where, "randperm")
    # Sorting 63 random bits: two equal ones among a million have a chance of 1 in 20 million.
    upper = bits((count,), where, source) & 0x7FFFFFFF
    keys = upper * (1 << 32) + bits((count,), where, source)
    result = keys.argsort(stable=True).to(chosen)
    return creation.made(result, requires_grad)


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
        chosen, where = creation.options(dtype, device)
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
    result = _fresh(normal_numbers, shape, _floating(chosen, "normal"), where, source)
    result = in_place_of((result * std + mean).to(chosen), *tensors)
    return creation.made(result, requires_grad)


def check_deviation(std: Any, name: str) -> None:
    """Raise RuntimeError if a standard deviation is negative."""
    if isinstance(std, TensorBase):
        if std._key.device.type != "cpu" or not math.prod(std._shape):
            return  # elsewhere the question would wait for the device
        if std.is_complex() or bool((std >= 0).all()):  # type: ignore[attr-defined, operator]
            return
    elif std >= 0:
        return
    if isinstance(std, TensorBase):
        raise RuntimeError(f"{name}(): normal expects all elements of std >= 0.0")
    raise RuntimeError(f"{name}(): normal expects std >= 0.0, but found std {std:g}")


cast_error(normal, error=NotImplementedError)
