"""Random words by counter, and numbers made of them.

Everything random is arithmetic on what one primitive gives, so a seed gives the same integers and uniform
numbers on every device, and normal ones up to the rounding of logarithm and cosine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.device import Device
from ...device.dtypes import DType, bfloat16, float16, float32, int64
from ...device.generator import Generator
from ...dispatch.execution import kernel_of
from ...dispatch.keys import dispatch_key
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.state import dispatch_state
from ...tensor.base import new_tensor
from ...tensor.shapes import Shape

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["philox_bits"]

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
    return box_muller(first, second).to(dtype)


def box_muller(radius: Any, angle: Any) -> Any:
    """Return normal numbers of uniform ones, of which `radius` must not be 0."""
    return (radius.log() * -2.0).sqrt() * (angle * (2.0 * math.pi)).cos()
