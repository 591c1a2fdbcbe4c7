"""Derivatives of maximum, minimum and clamp."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.bitwise import bitwise_and
from tensorplug.core.ops.clamp import clamp_backward, maximum
from tensorplug.core.ops.comparison import eq, ge, gt, le, lt
from tensorplug.core.ops.masking import where

from ..engine.derivatives import derivative
from .shape import fitted


def _clamp_min(
    g: Any, input: Any, min: Any, max: Any, min_shape: tuple[int, ...], min_dtype: Any
) -> Any:
    return fitted(where(bitwise_and(lt(input, min), le(min, max)), g, 0), min_shape, min_dtype)


def _clamp_max(
    g: Any, input: Any, min: Any, max: Any, max_shape: tuple[int, ...], max_dtype: Any
) -> Any:
    return fitted(where(gt(maximum(input, min), max), g, 0), max_shape, max_dtype)


def _half_of_ties(g: Any, mine: Any, other: Any, beyond: Any) -> Any:
    return where(beyond(other, mine), 0, where(eq(mine, other), g * 0.5, g))


DERIVATIVES = [
    derivative(
        "clamp",
        input=lambda g, input, min, max, input_shape, input_dtype: fitted(
            clamp_backward(g, input, min, max), input_shape, input_dtype
        ),
        min=_clamp_min,
        max=_clamp_max,
    ),
    derivative(
        "clamp_max",
        input=lambda g, input, max: where(le(input, max), g, 0),
        max=lambda g, input, max: where(gt(input, max), g, 0),
    ),
    derivative(
        "clamp_min",
        input=lambda g, input, min: where(ge(input, min), g, 0),
        min=lambda g, input, min: where(lt(input, min), g, 0),
    ),
    derivative(
        "maximum",
        input=lambda g, input, other: _half_of_ties(g, input, other, gt),
        other=lambda g, input, other: _half_of_ties(g, other, input, gt),
    ),
    derivative(
        "minimum",
        input=lambda g, input, other: _half_of_ties(g, input, other, lt),
        other=lambda g, input, other: _half_of_ties(g, other, input, lt),
    ),
]
