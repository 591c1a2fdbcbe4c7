"""Derivatives of complex numbers put together of their parts."""

from __future__ import annotations

from tensorplug.core.ops.complex import imag, real

from ..engine.derivatives import derivative
from ..forward.tangents import linear

DERIVATIVES = [derivative("complex", real=lambda g: real(g), imag=lambda g: imag(g))]


TANGENTS = [linear("complex", "real", "imag")]
