"""Derivatives of triangles of matrices."""

from __future__ import annotations

from tensorplug.core.ops.triangles import tril, triu

from ..engine.derivatives import derivative
from ..forward.tangents import linear

DERIVATIVES = [
    derivative("tril", input=lambda g, diagonal: tril(g, diagonal)),
    derivative("triu", input=lambda g, diagonal: triu(g, diagonal)),
]


TANGENTS = [
    linear("tril", "input"),
    linear("triu", "input"),
]
