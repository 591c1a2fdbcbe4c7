"""Numbers drawn from Poisson distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import DType, float32, float64
from ...device.generator import Generator
from ...dispatch.op import Op
from ...dispatch.op_registry import composite
from ...dispatch.state import dispatch_state
from ...tensor.predicates import all_samples, any_in_samples
from ...tensor.shapes import Shape
from ..comparison import is_within
from ..copying import in_place_of
from .distributions import source_of
from .numbers import drawn
from .words import philox_bits

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["poisson"]

_FROM = 10.0  # above this rate, rejection needs fewer steps than inversion
_WORDS_PER_BLOCK = 4

# What gives two uniform numbers for each element; they differ from round to round.
_Pairs = Callable[[int], tuple[Any, Any]]


@composite(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return numbers drawn from Poisson distributions of the rates that `input` holds.

    Parameters
    ----------
    input : Tensor
        Floating-point rates, not negative.
    generator : Generator, optional
        By default the device's own.

    Raises
    ------
    RuntimeError
        If a rate is negative.

    Notes
    -----
    Rates below 10 by inversion of the distribution function, larger ones by transformed rejection
    (PTRS, Hörmann 1993).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.poisson(tp.zeros(3))
    tensor([0., 0., 0.])
    """
    source = source_of(input, generator, "poisson")
    rates: Any = input.detach() if input._state or dispatch_state.layers_active else input
    key = rates._key
    if key.dtype.itemsize == 2:
        rates = rates.to(float32)
    if not is_within(all_samples(rates), 0.0, math.inf):
        raise RuntimeError("poisson(): invalid Poisson rate, expected rate to be non-negative")
    # How many words it takes shows as they are drawn: from a stream of their own, which one block names.
    seed, offset = source.take(_WORDS_PER_BLOCK)
    stream = (offset + 1) % (1 << 64) << 64
    shape, own = rates._shape, rates._key
    made: Any
    if (
        dispatch_state.layers_active
        or own.is_meta
        or not dispatch_state.native_kernel(_COUNTS, own)
    ):
        made = poisson_new(shape, seed, stream, own.dtype, own.device, rates)
    else:  # there is nothing to record, convert or look up
        made = drawn(_COUNTS, shape, own, seed, stream, (rates._array,), own)
    return in_place_of(made if own is key else made.to(key.dtype), input)


@composite(random=True, method=False)
def poisson_new(
    shape: Shape, seed: int, offset: int, dtype: DType, device: Device, rates: Tensor
) -> Tensor:
    """Return numbers drawn from Poisson distributions, by counter.

    Parameters
    ----------
    shape, seed, offset, dtype, device
        As for :func:`uniform_new`: of the rates. Element *i* of *n* is decided by the blocks `offset` + *i*,
        `offset` + *n* + *i* and so on, as many as it takes; each holds two numbers from 0 to below 1 of two
        words, the upper ones of which come first.
    rates : Tensor
        Floating-point rates, not negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> rates = tp.tensor([0.0, 3.0, 1000.0])
    >>> tp.ops.poisson_new((3,), 0, 0, tp.float32, tp.device("cpu"), rates)
    tensor([  0.,   7., 995.])
    """
    rate: Any = rates.to(float64)
    count = math.prod(shape)
    if not count:
        return rates.clone()

    def pairs(turn: int) -> tuple[Any, Any]:
        words: Any = philox_bits((*shape, _WORDS_PER_BLOCK), seed, offset + turn * count, device)
        upper, lower = words[..., 0::2] * (1 << 21), words[..., 1::2] >> 11
        numbers = (upper + lower).to(float64) * 2.0**-53
        return numbers[..., 0], numbers[..., 1]

    large = rate >= _FROM
    result = _by_inversion(rate.masked_fill(large, 0.0), pairs(0)[0])
    if any_in_samples(large):
        rejected = _by_rejection(rate.masked_fill(~large, _FROM), pairs)
        result = rejected.where(large, result)
    made: Tensor = result.to(dtype)
    return made


_COUNTS: Op = poisson_new.op  # type: ignore[attr-defined]


def _by_inversion(rate: Any, draw: Any) -> Any:
    chance = (-rate).exp()
    below = chance
    count = rate * 0.0
    step = 0
    # Rates below 10 never need 100 steps: the chance of that is under 1e-60.
    while step < 100 and any_in_samples(draw >= below):
        step += 1
        count = count + (draw >= below).to(float64)
        chance = chance * rate / step
        below = below + chance
    return count


def _by_rejection(rate: Any, pairs: _Pairs) -> Any:
    root = rate.sqrt()
    b = root * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    limit = 0.9277 - 3.6224 / (b - 2.0)
    log_rate = rate.log()
    result = rate * 0.0
    open_ = result == 0.0
    turn = 0
    while any_in_samples(open_):
        first, second = pairs(turn)
        turn += 1
        u, v = first - 0.5, 1.0 - second
        us = 0.5 - u.abs()
        k = ((a * 2.0 / us + b) * u + rate + 0.43).floor()
        quick = (us >= 0.07) & (v <= limit)
        hopeless = (k < 0) | ((us < 0.013) & (v > us))
        left = v.log() + inverse_alpha.log() - (a / (us * us) + b).log()
        right = k * log_rate - rate - (k + 1.0).lgamma()
        accepted = open_ & (quick | (~hopeless & (left <= right)))
        result = k.where(accepted, result)
        open_ = open_ & ~accepted
    return result
