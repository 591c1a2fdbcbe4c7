"""Derivatives of linear combinations, and of what lies between bounds."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.bitwise import bitwise_and
from tensorplug.core.ops.clamp import _clamp_gradient, maximum
from tensorplug.core.ops.comparison import gt, le, lt
from tensorplug.core.ops.masking import where

from ..derivatives import derivative
from .numeric import fitted
from .pointwise import conjugate


def _lerp_weight(
    g: Any, input: Any, end: Any, weight_shape: tuple[int, ...], weight_dtype: Any
) -> Any:
    return fitted(g * (end - input).conj(), weight_shape, weight_dtype)


def _divisor(
    g: Any,
    tensor1: Any,
    tensor2: Any,
    value: Any,
    tensor2_shape: tuple[int, ...],
    tensor2_dtype: Any,
) -> Any:
    slope = (tensor1 * value / tensor2 / tensor2).conj()
    return fitted(-g * slope, tensor2_shape, tensor2_dtype)


def _clamp_min(
    g: Any, input: Any, min: Any, max: Any, min_shape: tuple[int, ...], min_dtype: Any
) -> Any:
    return fitted(where(bitwise_and(lt(input, min), le(min, max)), g, 0), min_shape, min_dtype)


def _clamp_max(
    g: Any, input: Any, min: Any, max: Any, max_shape: tuple[int, ...], max_dtype: Any
) -> Any:
    return fitted(where(gt(maximum(input, min), max), g, 0), max_shape, max_dtype)


DERIVATIVES = [
    derivative("_add_scaled", input=lambda g: g, other=lambda g, alpha: g * alpha),
    derivative(
        "_addcdiv",
        input=lambda g, input_shape, input_dtype: fitted(g, input_shape, input_dtype),
        tensor1=lambda g, tensor2, value, tensor1_shape, tensor1_dtype: fitted(
            g * (value / tensor2).conj(), tensor1_shape, tensor1_dtype
        ),
        tensor2=_divisor,
    ),
    derivative(
        "_addcmul",
        input=lambda g, input_shape, input_dtype: fitted(g, input_shape, input_dtype),
        tensor1=lambda g, tensor2, value, tensor1_shape, tensor1_dtype: fitted(
            g * (tensor2 * value).conj(), tensor1_shape, tensor1_dtype
        ),
        tensor2=lambda g, tensor1, value, tensor2_shape, tensor2_dtype: fitted(
            g * (tensor1 * value).conj(), tensor2_shape, tensor2_dtype
        ),
    ),
    derivative(
        "_clamp",
        input=lambda g, input, min, max, input_shape, input_dtype: fitted(
            _clamp_gradient(g, input, min, max), input_shape, input_dtype
        ),
        min=_clamp_min,
        max=_clamp_max,
    ),
    derivative(
        "_lerp",
        input=lambda g, weight, input_shape, input_dtype: fitted(
            g * conjugate(1 - weight), input_shape, input_dtype
        ),
        end=lambda g, weight, end_shape, end_dtype: fitted(
            g * conjugate(weight), end_shape, end_dtype
        ),
        weight=_lerp_weight,
    ),
    derivative("frac", input=lambda g: g),
]
