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


def _blocks(g: Any, matrices_shape: list[tuple[int, ...]]) -> list[Any]:
    blocks = []
    row = column = 0
    for height, width in matrices_shape:
        blocks.append(g.narrow(0, row, height).narrow(1, column, width))
        row += height
        column += width
    return blocks


DERIVATIVES = [
    derivative("matrices_along_diagonal", matrices=_blocks),
    derivative("cat", tensors=_pieces),
    derivative(
        "stack",
        tensors=lambda g, tensors_shape, dim: [g.select(dim, n) for n in range(len(tensors_shape))],
    ),
]


TANGENTS = [
    linear("matrices_along_diagonal", "matrices"),
    linear("cat", "tensors"),
    linear("stack", "tensors"),
]


VMAP_RULES = [
    shared_rule("cat", "cat"),
]
