"""Formulas of several steps, made one kernel by MLX where that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _mlx
from .._mlx import mx


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays compiled by MLX on the GPU; on the CPU that would call a C++ compiler."""
    if _mlx.DEVICE.type != mx.gpu:
        return function
    compiled: Callable[..., Any] = mx.compile(function, shapeless=True)
    return compiled
