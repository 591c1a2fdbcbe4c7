"""Kernels of MLX's functions, above those that the adapter has for any array library."""

from __future__ import annotations

from typing import Any


def families() -> tuple[Any, ...]:
    """Return the modules, each with a function ``build``."""
    from . import (
        activation,
        arithmetic,
        attention,
        bitwise,
        convolution,
        creation,
        cumulative,
        elementary,
        embedding,
        fft,
        indexing,
        linear,
        losses,
        normalization,
        optimizers,
        random,
        reductions,
        softmax,
        sorting,
    )

    return (
        activation,
        arithmetic,
        attention,
        bitwise,
        convolution,
        creation,
        cumulative,
        elementary,
        embedding,
        fft,
        indexing,
        linear,
        losses,
        normalization,
        optimizers,
        random,
        reductions,
        softmax,
        sorting,
    )
