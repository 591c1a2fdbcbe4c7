"""Derivatives of joining."""

from __future__ import annotations

from typing import Any

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule


def _pieces(g: Any, tensors_shape: list[tuple[int, ...]], dim: int) -> list[Any]:
    pieces = []
    start = 0
    for shape in tensors_shape:
        pieces.append(g.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return pieces


DERIVATIVES = [
    derivative("cat", tensors=_pieces),
    derivative(
        "stack",
        tensors=lambda g, tensors_shape, dim: [g.select(dim, n) for n in range(len(tensors_shape))],
    ),
]


TANGENTS = [
    linear("cat", "tensors"),
    linear("stack", "tensors"),
]


VMAP_RULES = [
    shared_rule("cat", "cat"),
]
