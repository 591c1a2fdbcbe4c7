"""Derivatives of choice by a mask."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.ops.indexing.indexing import zeros_like_gradient as zeros
from tensorplug.core.ops.joining.joining import cat
from tensorplug.core.ops.masking import masked_select, where

from ..engine.derivatives import derivative, on_tensors
from ..forward.tangents import holomorphic, linear
from ..vmap.vmap_rules import shared_rule
from .shape import sum_to_shape


@on_tensors
def _masked_select(g: Any, mask: Any, input_shape: tuple[int, ...]) -> Any:
    return zeros(g, input_shape).masked_scatter(mask, g)


@on_tensors
def _scattered(g: Any, mask: Any, source_shape: tuple[int, ...]) -> Any:
    """Return the gradient of what was written at a mask, with zeros for what was left over."""
    taken = masked_select(g, mask)
    rest = math.prod(source_shape) - taken._shape[0]
    return cat([taken, zeros(g, (rest,))]).reshape(source_shape)


VMAP_RULES = [
    shared_rule("loop_by_counts", "masked_scatter"),
]


DERIVATIVES = [
    derivative(
        "where",
        condition=None,
        input=lambda g, condition: where(condition, g, 0),
        other=lambda g, condition: where(condition, 0, g),
    ),
    derivative("masked_select", input=_masked_select, mask=None),
    derivative(
        "masked_scatter",
        input=lambda g, mask, input_shape: sum_to_shape(where(mask, 0, g), input_shape),
        mask=None,
        source=_scattered,
    ),
]


TANGENTS = [
    *holomorphic("where"),
    linear("masked_select", "input"),
    linear("masked_scatter", "input", "source"),
]
