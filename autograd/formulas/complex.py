"""Derivatives of complex numbers put together of their parts."""

from __future__ import annotations

from tensorplug.core.ops.complex import imag, real

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from .shape import sum_to_shape

DERIVATIVES = [
    derivative(
        "complex",
        real=lambda g, real_shape: sum_to_shape(real(g), real_shape),
        imag=lambda g, imag_shape: sum_to_shape(imag(g), imag_shape),
    )
]


TANGENTS = [linear("complex", "real", "imag")]
