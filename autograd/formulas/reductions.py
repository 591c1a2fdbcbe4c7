"""Derivatives of reductions."""

from __future__ import annotations

from typing import Any

from ..derivatives import derivative


def restore(g: Any, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return `g`, a reduction's gradient, with its dimensions of size 1 back and expanded to `shape`."""
    if not keepdim:
        kept = tuple([1 if d in dim else size for d, size in enumerate(shape)])
        g = g.reshape(kept)
    return g.expand(shape)


DERIVATIVES = [
    derivative(
        "sum",
        input=lambda g, input_shape, dim, keepdim: restore(g, input_shape, dim, keepdim),
    ),
]
