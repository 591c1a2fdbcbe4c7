"""Numbers drawn by counter: uniform, normal and whole ones, and yes or no.

Each kind is an op of a seed and a counter. Its body makes the numbers of :mod:`.words`; a kernel that makes
them in one go has to give the same, so that a seed means the same everywhere. One that takes ``out`` draws
into memory that is there, see :mod:`.fills`. Where a layer looks on, a generator's next numbers are made of
words that are calls of their own, which vmap draws anew for each sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import DType, float32, float64, int64
from ...device.generator import Generator
from ...dispatch.execution import kernel_of, native_kernel, verify
from ...dispatch.keys import DispatchKey
from ...dispatch.op import Op
from ...dispatch.op_registry import composite
from ...dispatch.state import dispatch_state
from ...tensor.base import TensorBase, new_tensor
from ...tensor.shapes import Shape
from ..creation.creation import empty
from ..rules import cast
from .words import (
    bits,
    box_muller,
    normal_of_words,
    philox_bits,
    significand_bits,
    uniform_of_words,
)

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

# The words that the numbers of a shape take come in as many calls as the numbers have words.
_Words = Callable[[Shape], Any]
_WORDS_PER_BLOCK = 4
# More numbers than these are drawn in pieces, as what they are made of takes several times their memory.
_PIECE = 1 << 22


def counted(seed: int, offset: int, device: Device) -> _Words:
    """Return what gives the words of a seed from a counter on."""

    def words(shape: Shape) -> Any:
        nonlocal offset
        first = offset
        offset += -(-math.prod(shape) // _WORDS_PER_BLOCK)
        return philox_bits(shape, seed, first, device)

    return words


def _in_pieces(make: Callable[[Shape], Any], shape: Shape, dtype: DType, device: Device) -> Any:
    count = math.prod(shape)
    if count <= _PIECE:
        return make(shape)
    result = empty((count,), dtype=dtype, device=device)
    for start in range(0, count, _PIECE):
        size = min(_PIECE, count - start)
        result[start : start + size] = make((size,))
    return result.reshape(shape)


def by_kernel(
    op: Op,
    shape: Shape,
    key: DispatchKey,
    generator: Generator,
    words: int,
    more: tuple[Any, ...],
    into: Any,
    result: DispatchKey | None = None,
) -> Any:
    """Return a generator's next numbers, of some words each, as a kernel makes them in one go.

    There is nothing to record, convert or look up. None where a layer looks on, or no plugin has a kernel, or
    none that writes into the array `into`, if that is given. They are of `key`, unless `result` is another.
    """
    if dispatch_state.layers_active:
        return None
    if into is None:
        if key.is_meta or not native_kernel(op, key):
            return None
    elif key.writers[op.index] is None or dispatch_state.verify:
        return None  # its first result, or each, is held to the declaration
    count = 1
    for size in shape:
        count *= size
    # Each piece is of whole blocks, so only the last one is filled up.
    blocks = (count + _WORDS_PER_BLOCK - 1) // _WORDS_PER_BLOCK
    seed, offset = generator.take(words * blocks * _WORDS_PER_BLOCK)
    if into is not None:
        write: Any = key.writers[op.index]
        write(shape, seed, offset, key.dtype, key.device, *more, out=into)
        return new_tensor(into, key, shape)
    return drawn(op, shape, key, seed, offset, more, key if result is None else result)


def drawn(
    op: Op,
    shape: Shape,
    key: DispatchKey,
    seed: int,
    offset: int,
    more: tuple[Any, ...],
    made: DispatchKey,
) -> Any:
    """Return what a kernel makes of a seed and a counter, as a tensor of key `made`."""
    array = kernel_of(op, key)(shape, seed, offset, key.dtype, key.device, *more)
    if dispatch_state.verify:
        verify(op, key, array, ((shape, made.dtype),))
    output = new_tensor(array, made, shape)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


# --- uniform ----------------------------------------------------------------------------------


@composite(random=True, method=False)
def uniform_new(shape: Shape, seed: int, offset: int, dtype: DType, device: Device) -> Tensor:
    """Return numbers from 0 to below 1, on the grid that `dtype` represents throughout.

    Parameters
    ----------
    shape : tuple of int
        The sizes.
    seed, offset : int
        As for :func:`philox_bits`. Numbers of float64 are made of two words, the upper ones of which come
        first, all others of one.
    dtype, device : DType, Device
        Of the result.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.uniform_new((2,), 0, 0, tp.float32, tp.device("cpu"))
    tensor([0.3990, 0.8805])
    """
    words = counted(seed, offset, device)
    return _in_pieces(partial(_uniform, words, dtype), shape, dtype, device)


def _uniform(words: _Words, dtype: DType, shape: Shape) -> Any:
    if dtype is float64:
        high = words(shape) * (1 << 21)
        low = words(shape) >> 11
        return (high + low).to(float64) * 2.0**-53
    significand_bits(dtype)
    return uniform_of_words(words(shape), dtype)


_UNIFORM: Op = uniform_new.op  # type: ignore[attr-defined]


def uniform_numbers(shape: Shape, key: DispatchKey, generator: Generator, into: Any = None) -> Any:
    """Return a generator's next numbers as :func:`uniform_new` makes them.

    With `into`, an array that holds them, they are written there, and where no kernel does that, None is
    returned and nothing drawn.
    """
    words = 2 if key.dtype is float64 else 1
    made = by_kernel(_UNIFORM, shape, key, generator, words, (), into)
    if made is None and into is None:
        draw = partial(bits, device=key.device, generator=generator)
        made = _in_pieces(partial(_uniform, draw, key.dtype), shape, key.dtype, key.device)
    return made


# --- normal -----------------------------------------------------------------------------------


@composite(random=True, method=False)
def normal_new(shape: Shape, seed: int, offset: int, dtype: DType, device: Device) -> Tensor:
    """Return numbers of the standard normal distribution (Box and Muller 1958).

    The parameters are those of :func:`uniform_new`. Each number is made of the words of two uniform ones.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.normal_new((2,), 0, 0, tp.float32, tp.device("cpu")).shape
    Size([2])
    """
    words = counted(seed, offset, device)
    return _in_pieces(partial(_normal, words, dtype), shape, dtype, device)


def _normal(words: _Words, dtype: DType, shape: Shape) -> Any:
    if dtype is float64:
        radius = 1.0 - _uniform(words, float64, shape)
        return box_muller(radius, _uniform(words, float64, shape))
    radius = words(shape)
    return normal_of_words(radius, words(shape), dtype)


_NORMAL: Op = normal_new.op  # type: ignore[attr-defined]


def normal_numbers(shape: Shape, key: DispatchKey, generator: Generator, into: Any = None) -> Any:
    """Return a generator's next numbers as :func:`normal_new` makes them; see :func:`uniform_numbers`."""
    words = 4 if key.dtype is float64 else 2
    made = by_kernel(_NORMAL, shape, key, generator, words, (), into)
    if made is None and into is None:
        draw = partial(bits, device=key.device, generator=generator)
        made = _in_pieces(partial(_normal, draw, key.dtype), shape, key.dtype, key.device)
    return made


# --- whole ------------------------------------------------------------------------------------


@composite(random=True, method=False)
def integers_new(
    shape: Shape, seed: int, offset: int, dtype: DType, device: Device, low: int, high: int
) -> Tensor:
    """Return whole numbers from `low` to `high` - 1.

    The other parameters are those of :func:`uniform_new`. A number is made of one word where there are at
    most 2¹⁶ of them, of two words, the upper ones of which come first, where there are more.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.integers_new((3,), 0, 0, tp.int64, tp.device("cpu"), 0, 10)
    tensor([3, 8, 7])
    """
    return _integers(counted(seed, offset, device), low, high, dtype, shape)


_ONE_WORD = 1 << 16  # as many numbers as one word decides among evenly enough


def _integers(words: _Words, low: int, high: int, dtype: DType, shape: Shape) -> Any:
    span = high - low
    if span <= _ONE_WORD:
        numbers = (words(shape) * span) >> 32
    else:
        upper = words(shape)
        lower = words(shape)
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


_INTEGERS: Op = integers_new.op  # type: ignore[attr-defined]


def integer_numbers(
    shape: Shape,
    key: DispatchKey,
    generator: Generator,
    low: int,
    high: int,
    into: Any = None,
) -> Any:
    """Return a generator's next numbers as :func:`integers_new` makes them; see :func:`uniform_numbers`."""
    words = 1 if high - low <= _ONE_WORD else 2
    made = by_kernel(_INTEGERS, shape, key, generator, words, (low, high), into)
    if made is None and into is None:
        made = _integers(
            partial(bits, device=key.device, generator=generator), low, high, key.dtype, shape
        )
    return made


# --- yes or no --------------------------------------------------------------------------------


@composite(random=True, method=False)
def bernoulli_new(
    shape: Shape, seed: int, offset: int, dtype: DType, device: Device, chance: Tensor | float
) -> Tensor:
    """Return ones where :func:`uniform_new` gives less than `chance`, else zeros.

    Parameters
    ----------
    shape, seed, offset, dtype, device
        As for :func:`uniform_new`. The numbers compared are of float64 if `dtype` or the chances are, else of
        float32.
    chance : Tensor or float
        Chances, of a shape that goes with `shape`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.bernoulli_new((2,), 0, 0, tp.float32, tp.device("cpu"), tp.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    return _bernoulli(counted(seed, offset, device), chance, dtype, device, shape)


def _compared_in(chance: Any, dtype: DType) -> DType:
    precise = dtype is float64 or getattr(chance, "dtype", None) is float64
    return float64 if precise else float32


def _bernoulli(words: _Words, chance: Any, dtype: DType, device: Device, shape: Shape) -> Any:
    compared = _compared_in(chance, dtype)
    drawn = _in_pieces(partial(_uniform, words, compared), shape, compared, device)
    return (drawn < chance).to(dtype)


_BERNOULLI: Op = bernoulli_new.op  # type: ignore[attr-defined]


def bernoulli_numbers(
    shape: Shape,
    key: DispatchKey,
    generator: Generator,
    chance: Any,
    into: Any = None,
) -> Any:
    """Return a generator's next numbers as :func:`bernoulli_new` makes them; see :func:`uniform_numbers`."""
    given, compared = chance, key
    if isinstance(chance, TensorBase):
        if chance._key is not key and into is None:  # what is drawn is converted
            compared = key.with_dtype(_compared_in(chance, key.dtype))
        alike = chance._key is compared and chance._shape == shape
        given = chance._array if alike else None
    if given is not None:
        words = 2 if compared.dtype is float64 else 1
        made = by_kernel(_BERNOULLI, shape, compared, generator, words, (given,), into)
        if made is not None:
            return made if compared is key else cast(made, key.dtype)
    if into is not None:
        return None
    draw = partial(bits, device=key.device, generator=generator)
    return _bernoulli(draw, chance, key.dtype, key.device, shape)
