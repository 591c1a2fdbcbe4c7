"""Random numbers, from the generator of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


@operator("RandomNormal", placed=True)
def random_normal(
    *, shape: Sequence[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, device: Any
) -> Tensor:
    return ops.randn(tuple(shape), dtype=dtype_of(dtype), device=device) * scale + mean


@operator("RandomNormalLike")
def random_normal_like(
    input: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0
) -> Tensor:
    kind = input.dtype if dtype is None else dtype_of(dtype)
    return ops.randn(tuple(input.shape), dtype=kind, device=input.device) * scale + mean


@operator("RandomUniform", placed=True)
def random_uniform(
    *, shape: Sequence[int], dtype: int = 1, high: float = 1.0, low: float = 0.0, device: Any
) -> Tensor:
    return ops.rand(tuple(shape), dtype=dtype_of(dtype), device=device) * (high - low) + low


@operator("RandomUniformLike")
def random_uniform_like(
    input: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0
) -> Tensor:
    kind = input.dtype if dtype is None else dtype_of(dtype)
    return ops.rand(tuple(input.shape), dtype=kind, device=input.device) * (high - low) + low


@operator("Bernoulli")
def bernoulli(input: Tensor, *, dtype: int | None = None) -> Tensor:
    drawn = ops.rand_like(input) < input
    return drawn.to(input.dtype if dtype is None else dtype_of(dtype))


@operator("Multinomial")
def multinomial(input: Tensor, *, dtype: int = 6, sample_size: int = 1) -> Tensor:
    """Draw classes by unnormalized log-probabilities."""
    weights = ops.softmax(input.float(), 1)
    return ops.multinomial(weights, sample_size, True).to(dtype_of(dtype))
