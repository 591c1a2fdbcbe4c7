"""Draws from distributions: bernoulli, multinomial and poisson."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ...device.dtypes import ALL_DTYPES, COMPLEX, FLOATING, float32, float64
from ...device.generator import Generator, chosen_generator
from ...dispatch.op_registry import composite
from ...dispatch.out_variants import exact_out
from ...dispatch.state import dispatch_state
from ..comparison import is_within
from ..copying import in_place_of
from ..rules import check_tensor, number
from ..sorting.searching import searchsorted
from .numbers import bernoulli_numbers, uniform_numbers

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["bernoulli", "multinomial", "poisson"]

_PTRS_FROM = 10.0  # above this rate, rejection needs fewer steps than inversion


def source_of(
    input: Any, generator: Generator | None, name: str, *, whole: bool = False
) -> Generator:
    """Return the generator that an op of `input`, floats unless `whole` numbers will do, draws from."""
    check_tensor(input, name)
    if not whole and input._key.dtype.category < FLOATING:
        raise NotImplementedError(f"{name}(): not implemented for {input._key.dtype.name}")
    return chosen_generator(generator, input._key.device, name)


def _uniform(input: Any, generator: Generator) -> Any:
    """Return uniform numbers in the shape of `input`, precise enough for its dtype."""
    dtype = float64 if input._key.dtype is float64 else float32
    return uniform_numbers(input._shape, dtype, input._key.device, generator)


def checked_chance(p: Any, name: str) -> Any:
    """Return a probability, checked where that costs no waiting for a device."""
    if not hasattr(p, "_key"):
        value = number(p, name, "p")
        if not 0 <= value <= 1:  # type: ignore[operator]
            raise RuntimeError(f"{name}(): Expected p_in >= 0 && p_in <= 1, but got p={value}")
        return value
    key = p._key
    if key.dtype.category == COMPLEX:
        raise NotImplementedError(f"{name}(): not implemented for {key.dtype.name}")
    if dispatch_state.layers_active or p.requires_grad:
        p = p.detach()
    if key.device.type == "cpu" and not is_within(p, 0.0, 1.0):
        raise RuntimeError(
            f"{name}(): Expected p_in >= 0 && p_in <= 1 for each element of the tensor"
        )
    return p.to(float32) if key.dtype.itemsize == 2 else p


@composite()
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Return ones with the chances that `input` holds (or `p`, if given), else zeros.

    Parameters
    ----------
    input : Tensor
        Floating-point chances from 0 to 1.
    p : float, optional
        One chance for all elements.
    generator : Generator, optional
        By default the device's own.

    Raises
    ------
    RuntimeError
        If a chance lies outside of 0 to 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bernoulli(tp.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    source = source_of(input, generator, "bernoulli", whole=p is not None)
    chance = checked_chance(input if p is None else p, "bernoulli")
    key = input._key
    drawn = bernoulli_numbers(input._shape, key.dtype, key.device, source, chance)
    return in_place_of(drawn, input)


@composite()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn from each row with chances in proportion to its values.

    Parameters
    ----------
    input : Tensor
        Weights, floating-point and not negative, of shape (categories) or (rows, categories).
    num_samples : int
        How many indices per row.
    replacement : bool
        Whether an index may be drawn more than once.
    generator : Generator, optional
        By default the device's own.

    Returns
    -------
    Tensor
        int64, of shape (num_samples) or (rows, num_samples).

    Raises
    ------
    RuntimeError
        If the weights are not of the kind said, or too few.

    Notes
    -----
    Without replacement, the largest *weight / e* win, where each *e* is drawn from an exponential
    distribution (Efraimidis and Spirakis 2006).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.multinomial(tp.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    source = source_of(input, generator, "multinomial")
    weights = input.detach()
    _check_weights(weights, num_samples, replacement)
    if weights.dtype.itemsize == 2:
        weights = weights.to(float32)
    if not replacement or num_samples == 1:
        race = -(-_uniform(weights, source)).log1p()
        tiny = 1e-45 if weights.dtype is float32 else 5e-324
        scores = weights / race.clamp(min=tiny)
        if num_samples == 1:
            return scores.argmax(-1, keepdim=True)
        return scores.topk(num_samples, -1).indices
    steps = weights.cumsum(-1)
    steps = steps / steps[..., -1:]
    draws = uniform_numbers(
        (*weights._shape[:-1], num_samples), weights.dtype, weights.device, source
    )
    return searchsorted(steps, draws, right=True)


def _check_weights(weights: Any, count: Any, replacement: bool) -> None:
    if weights.dim() not in (1, 2):
        raise RuntimeError(
            f"multinomial(): prob_dist must be 1 or 2 dim, got {list(weights.shape)}"
        )
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(
            f"multinomial(): argument 'num_samples' must be int, not {type(count).__name__}"
        )
    if count <= 0:
        raise RuntimeError(f"multinomial(): cannot sample n_sample <= 0 samples, got {count}")
    categories = weights.shape[-1]
    if not replacement and count > categories:
        raise RuntimeError(
            "multinomial(): cannot sample n_sample > prob_dist.size(-1) samples without "
            "replacement: "
            f"{count} of {categories}"
        )
    if weights.device.type != "cpu":
        return  # the questions below would wait for the device
    if not is_within(weights, 0.0, sys.float_info.max):
        raise RuntimeError(
            "multinomial(): probability tensor contains either `inf`, `nan` or element < 0"
        )
    if not math.prod(weights._shape[:-1]):
        return
    fewest = (weights > 0).sum(-1).amin().item()
    if not fewest:
        raise RuntimeError(
            "multinomial(): invalid multinomial distribution (sum of probabilities <= 0)"
        )
    if not replacement and fewest < count:
        raise RuntimeError(
            "multinomial(): invalid multinomial distribution (with replacement=False, not enough "
            "non-negative category to sample)"
        )


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
    rate = input.detach().to(float64)
    if not math.prod(rate._shape):
        return in_place_of(input.detach().clone(), input)
    if bool((rate < 0).any()):
        raise RuntimeError("poisson(): invalid Poisson rate, expected rate to be non-negative")
    large = rate >= _PTRS_FROM
    result = _poisson_by_inversion(rate.masked_fill(large, 0.0), source)
    if bool(large.any()):
        rejected = _poisson_by_rejection(rate.masked_fill(~large, _PTRS_FROM), source)
        result = rejected.where(large, result)
    return in_place_of(result.to(input.dtype), input)


def _poisson_by_inversion(rate: Any, source: Generator) -> Any:
    draw = uniform_numbers(rate._shape, float64, rate.device, source)
    chance = (-rate).exp()
    below = chance
    count = rate * 0.0
    step = 0
    # Rates below 10 never need 100 steps: the chance of that is under 1e-60.
    while step < 100 and bool((draw >= below).any()):
        step += 1
        count = count + (draw >= below).to(float64)
        chance = chance * rate / step
        below = below + chance
    return count


def _poisson_by_rejection(rate: Any, source: Generator) -> Any:
    root = rate.sqrt()
    b = root * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    limit = 0.9277 - 3.6224 / (b - 2.0)
    log_rate = rate.log()
    result = rate * 0.0
    open_ = result == 0.0
    while bool(open_.any()):
        u = uniform_numbers(rate._shape, float64, rate.device, source) - 0.5
        v = 1.0 - uniform_numbers(rate._shape, float64, rate.device, source)
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


exact_out(bernoulli, others=tuple(dtype for dtype in ALL_DTYPES if not dtype.is_complex))
exact_out(multinomial)
