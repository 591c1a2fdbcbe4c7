"""Ones with chances, and what the draws from other distributions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...device.dtypes import ALL_DTYPES, BOOL, COMPLEX, FLOATING, float32
from ...device.generator import Generator, chosen_generator
from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import exact_out, resizes_silently
from ...dispatch.state import dispatch_state
from ..comparison import is_within
from ..copying import in_place_of
from ..rules import check_tensor, number
from .numbers import bernoulli_numbers

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["bernoulli"]


def source_of(
    input: Any,
    generator: Generator | None,
    name: str,
    lowest: int = FLOATING,
    highest: int = FLOATING,
) -> Generator:
    """Return the generator that an op of `input`, of a dtype between two categories, draws from."""
    check_tensor(input, name)
    if not lowest <= input._key.dtype.category <= highest:
        remedy = ": dtype must be a floating point" if lowest == FLOATING else ""
        raise NotImplementedError(f"{name}(): not implemented for {input._key.dtype.name}{remedy}")
    return chosen_generator(generator, input._key.device, name)


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
    if dispatch_state.layers_active or p._state:  # perhaps recorded
        p = p.detach()
    if key.dtype.is_half:  # drawn numbers are compared in single precision
        p = p.to(float32)
    if key.device.type == "cpu" and not p._batched and not is_within(p, 0.0, 1.0):
        raise RuntimeError(
            f"{name}(): Expected p_in >= 0 && p_in <= 1 for each element of the tensor"
        )
    return p


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
    source = source_of(input, generator, "bernoulli", FLOATING if p is None else BOOL)
    chance = checked_chance(input if p is None else p, "bernoulli")
    drawn = bernoulli_numbers(input._shape, input._key, source, chance)
    return in_place_of(drawn, input)


exact_out(bernoulli, others=tuple(dtype for dtype in ALL_DTYPES if not dtype.is_complex))
resizes_silently(bernoulli)
