"""Derivatives of views and other changes of shape."""

from __future__ import annotations

from typing import Any

from ..derivatives import derivative


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def sum_to_shape(g: Any, shape: tuple[int, ...]) -> Any:
    """Return `g` summed over the dimensions along which `shape` was expanded to its own."""
    lead = len(g.shape) - len(shape)
    dims = [d for d in range(len(g.shape)) if d < lead or (shape[d - lead] == 1 != g.shape[d])]
    return (g.sum(dims) if dims else g).reshape(shape)


DERIVATIVES = [
    derivative("expand", input=lambda g, input_shape: sum_to_shape(g, input_shape)),
    derivative("permute", input=lambda g, dims: g.permute(_inverse(dims))),
    derivative("view", input=lambda g, input_shape: g.reshape(input_shape)),
]
