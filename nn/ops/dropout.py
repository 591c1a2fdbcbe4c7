"""Dropout by random words of a generator's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.dtypes import float32
from tensorplug.core.operators import composite
from tensorplug.core.ops import philox_bits

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False, outputs="output, kept")
def random_dropout(input: Tensor, p: float, seed: int, offset: int) -> tuple[Tensor, Tensor]:
    """Return `input` with each element zeroed with probability `p`, and which elements were kept.

    An element is kept if the number that ``tp.rand`` makes of its word is at least `p`.

    Parameters
    ----------
    input : Tensor
        Floating point, any shape.
    p : float
        Probability of a zero; the rest is scaled by 1/(1-p).
    seed, offset : int
        As for :func:`tensorplug.ops.philox_bits`; what ``Generator.take`` returns.

    Returns
    -------
    output, kept : Tensor
        Of the input's shape; of its dtype, and bool.
    """
    words: Any = philox_bits(input._shape, seed, offset, input.device)
    kept = (words >> 8).to(float32) * 2.0**-24 >= p
    return dropout_gradient(input, kept, p), kept


@composite(method=False)
def dropout_gradient(g: Tensor, kept: Tensor, p: float) -> Tensor:
    """Return `g` scaled by 1/(1-p) where `kept` is True, and zero elsewhere."""
    return g * (kept.to(g.dtype) * (1 / (1 - p) if p < 1 else 0.0))


DERIVATIVES = [
    derivative(
        "random_dropout", input=lambda g_output, kept, p: dropout_gradient(g_output, kept, p)
    ),
    derivative("dropout_gradient", g=lambda g, kept, p: dropout_gradient(g, kept, p)),
]
