"""Derivatives of pointwise arithmetic and elementary functions.

A real function of real input has g * f'(x); a holomorphic one of complex input g * conj(f'(x)), which is
torch's convention of gradients of complex numbers.
"""

from __future__ import annotations

from ..derivatives import derivative

DERIVATIVES = [
    derivative("add", input=lambda g: g, other=lambda g: g),
    derivative("exp", input=lambda g, result: g * result.conj()),
    derivative(
        "mul",
        input=lambda g, other: g * other,
        other=lambda g, input: g * input,
    ),
    derivative("sub", input=lambda g: g, other=lambda g: -g),
]
