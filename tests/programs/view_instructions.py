"""Instructions that make views: what random programs of autograd and of graphs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SHAPES = ((), (3,), (2, 3), (3, 3), (2, 3, 2), (1, 3), (0,), (0, 3), (2, 1))
ERRORS = (RuntimeError, IndexError, TypeError, ValueError)
# A name, the numbers of two registers, and a number from which dimensions and positions follow.
Instruction = tuple[str, int, int, int]


def along(x: Any, p: int) -> int:
    """Return one of the dimensions."""
    return p % max(x.ndim, 1)


def place(x: Any, dim: int, p: int) -> int:
    """Return a position along a dimension."""
    return p // 5 % max(x.shape[dim], 1)


VIEWS: dict[str, Callable[..., Any]] = {
    "select": lambda x, p: x.select(along(x, p), place(x, along(x, p), p)),
    "slice": lambda x, p: x[p % 2 :: 1 + p % 3],
    "narrow": lambda x, p: x.narrow(along(x, p), 0, place(x, along(x, p), p) + 1),
    "transpose": lambda x, p: x.transpose(along(x, p), along(x, p // 3)),
    "unsqueeze": lambda x, p: x.unsqueeze(p % (x.ndim + 1)),
    "squeeze": lambda x, p: x.squeeze(),
    "view": lambda x, p: x.view(-1),
    "diagonal": lambda x, p: x.diagonal(p % 3 - 1),
    "windows": lambda x, p: x.unfold(along(x, p), 2, 2),
    "index": lambda x, p: x[..., None],
}
