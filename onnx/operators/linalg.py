"""Linear algebra."""

from __future__ import annotations

from tensorplug.core import Tensor, ops

from ..registry import operator

__all__: list[str] = []


@operator("Det")
def det(X: Tensor) -> Tensor:
    return ops.det(X)
