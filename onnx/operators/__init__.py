"""ONNX's operators, written in ops, by family."""

from __future__ import annotations

from . import (
    attention,
    control,
    convolution,
    indexing,
    linalg,
    losses,
    matmul,
    normalization,
    pointwise,
    pooling,
    quantization,
    random,
    recurrent,
    reductions,
    resizing,
    sequences,
    shape,
    signal,
    sklearn,
    trees,
    vision,
)

__all__: list[str] = []
