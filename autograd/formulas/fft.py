"""Derivatives of Fourier transforms: each is linear, and its gradient is its adjoint."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.fft.fourier import _resized, fft_c2c, fft_r2c
from tensorplug.core.ops.linalg.rules import concatenate

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule


def _r2c(g: Any, input_shape: tuple[int, ...], dim: tuple[int, ...], normalization: int) -> Any:
    """Return the gradient: the half that was left out has none, and only the real part counts."""
    last = dim[-1]
    full = _resized(g, (last,), (input_shape[last],))
    return fft_c2c(full, dim, normalization, False).real


def _c2r(g: Any, dim: tuple[int, ...], normalization: int, last: int) -> Any:
    """Return the gradient: values that the transform mirrors count twice."""
    half = fft_r2c(g, dim, normalization)
    inner = (last - 1) // 2
    if inner <= 0:
        return half
    edge = dim[-1]
    size = half._shape[edge]
    parts = [half.narrow(edge, 0, 1), half.narrow(edge, 1, inner) * 2]
    if size > inner + 1:
        parts.append(half.narrow(edge, inner + 1, size - inner - 1))
    return concatenate(parts, edge)


DERIVATIVES = [
    derivative(
        "fft_c2c",
        input=lambda g, dim, normalization, forward: fft_c2c(g, dim, normalization, not forward),
    ),
    derivative("fft_r2c", input=_r2c),
    derivative("fft_c2r", input=_c2r),
]


TANGENTS = [
    linear("fft_c2c", "input"),
    linear("fft_c2r", "input"),
    linear("fft_r2c", "input"),
]


VMAP_RULES = [
    shared_rule("over_dims", "fft_c2c"),
]
