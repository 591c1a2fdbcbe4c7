"""Derivatives of choice by a mask."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.indexing.indexing import zeros_like_gradient as zeros
from tensorplug.core.ops.masking import where

from ..engine.derivatives import derivative, on_tensors
from ..forward.tangents import holomorphic, linear


@on_tensors
def _masked_select(g: Any, mask: Any, input_shape: tuple[int, ...]) -> Any:
    return zeros(g, input_shape).masked_scatter(mask, g)


DERIVATIVES = [
    derivative(
        "where",
        condition=None,
        input=lambda g, condition: where(condition, g, 0),
        other=lambda g, condition: where(condition, 0, g),
    ),
    derivative("masked_select", input=_masked_select, mask=None),
]


TANGENTS = [
    *holomorphic("where"),
    linear("masked_select", "input"),
]
