"""Records of activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType

from ..records import OpRecord, Sample
from ._networks import gelu, layer_record
from ._steps import stepwise


def _halves_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for dim in (-1, 0):
        yield Sample(make(4, 6), dim)
    yield Sample(make(0, 2), 1)


def _halves_slope_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 6), -1)
    yield Sample(make(2, 6), make(4, 6), 0)
    yield Sample(make(0, 1), make(0, 2), 1)


def _gated(a: Any, dim: int) -> Any:
    first, second = np.split(a, 2, dim)
    return first / (1 + np.exp(-second))


def _gated_slope(g: Any, a: Any, dim: int) -> Any:
    first, second = np.split(a, 2, dim)
    s = 1 / (1 + np.exp(-second))
    return np.concatenate([g * s, g * first * s * (1 - s)], dim)


# --- activations and losses -----------------------------------------------------------------------
def _activation_samples(*options: tuple[Any, ...]) -> Callable[[Any, DType], Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for option in options:
            yield Sample(make(2, 5), *option)
            yield Sample(make(), *option)
            yield Sample(make(0, 3), *option)

    return samples


def _gradient_samples(*options: tuple[Any, ...]) -> Callable[[Any, DType], Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for option in options:
            yield Sample(make(2, 5), make(2, 5), *option)
            yield Sample(make(), make(), *option)
            yield Sample(make(0, 3), make(0, 3), *option)

    return samples


def _slope_of(function: Any) -> Callable[..., Any]:
    """Return the reference of an activation's gradient: the activation's difference quotient."""
    step = 1e-5

    def product(g: Any, a: Any, *options: Any) -> Any:
        a = np.asarray(a, np.float64)
        return g * (function(a + step, *options) - function(a - step, *options)) / (2 * step)

    return product


def _softshrink(a: Any, lambd: float) -> Any:
    return a - np.clip(a, -lambd, lambd)


def _hardshrink(a: Any, lambd: float) -> Any:
    return np.where(np.abs(a) <= lambd, 0, a)


def _sigmoid(a: Any) -> Any:
    return 1 / (1 + np.exp(-a))


def _elu(a: Any, alpha: float, scale: float, input_scale: float) -> Any:
    return np.where(a > 0, scale * a, scale * alpha * (np.exp(np.minimum(a, 0) * input_scale) - 1))


def _softplus(a: Any, beta: float, threshold: float) -> Any:
    return np.where(a * beta > threshold, a, np.log1p(np.exp(np.minimum(a * beta, 500))) / beta)


def _prelu_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 5), make(5))
    yield Sample(make(2, 3, 4), make(3))
    yield Sample(make(4), make(1))
    yield Sample(make(), make())
    yield Sample(make(0, 3), make(3))


def _prelu(a: Any, weight: Any) -> Any:
    if weight.ndim and a.ndim >= 2:
        weight = weight.reshape(-1, *[1] * (a.ndim - 2))
    return np.where(a > 0, a, (weight if a.ndim else weight.reshape(())) * a)


def _celu(a: Any, alpha: float) -> Any:
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0) / alpha))


def _selu(a: Any) -> Any:
    return 1.0507009873554805 * _elu(a, 1.6732632423543772, 1.0, 1.0)


def _rrelu(a: Any, lower: float, upper: float) -> Any:
    return np.where(a > 0, a, a * (lower + upper) / 2)


def _torch_record(op: str, samples: Any, reference: Any) -> OpRecord:
    return layer_record(op, samples, reference, torch=f"nn.functional.{op}")


RECORDS = [
    stepwise("glu", _halves_samples, _gated),
    stepwise("glu_backward", _halves_slope_samples, _gated_slope),
    layer_record(
        "leaky_relu", _activation_samples((0.1,)), lambda a, slope: np.where(a > 0, a, a * slope)
    ),
    layer_record("elu", _activation_samples((1.0, 1.0, 1.0), (0.7, 1.1, 2.0)), _elu),
    layer_record("gelu", _activation_samples(("none",), ("tanh",)), gelu),
    layer_record("silu", _activation_samples(()), lambda a: a * _sigmoid(a)),
    layer_record("softplus", _activation_samples((1.0, 20.0), (2.0, 1.0)), _softplus),
    layer_record("logsigmoid", _activation_samples(()), lambda a: -np.log1p(np.exp(-a))),
    layer_record(
        "leaky_relu_backward",
        _gradient_samples((0.1,)),
        _slope_of(lambda a, slope: np.where(a > 0, a, a * slope)),
    ),
    layer_record(
        "elu_backward", _gradient_samples((1.0, 1.0, 1.0), (0.7, 1.1, 2.0)), _slope_of(_elu)
    ),
    layer_record("gelu_backward", _gradient_samples(("none",), ("tanh",)), _slope_of(gelu)),
    layer_record("silu_backward", _gradient_samples(()), _slope_of(lambda a: a * _sigmoid(a))),
    layer_record(
        "softplus_backward", _gradient_samples((1.0, 20.0), (2.0, 20.0)), _slope_of(_softplus)
    ),
    layer_record(
        "logsigmoid_backward", _gradient_samples(()), _slope_of(lambda a: -np.log1p(np.exp(-a)))
    ),
    layer_record(
        "hardtanh_backward",
        _gradient_samples((-1.0, 1.5)),
        _slope_of(lambda a, low, high: np.clip(a, low, high)),
    ),
    layer_record(
        "hardsigmoid_backward",
        _gradient_samples(()),
        _slope_of(lambda a: np.clip(a + 3, 0, 6) / 6),
    ),
    layer_record(
        "hardswish_backward",
        _gradient_samples(()),
        _slope_of(lambda a: a * np.clip(a + 3, 0, 6) / 6),
    ),
    layer_record(
        "mish_backward",
        _gradient_samples(()),
        _slope_of(lambda a: a * np.tanh(np.log1p(np.exp(a)))),
    ),
    layer_record("mish", _activation_samples(()), lambda a: a * np.tanh(np.log1p(np.exp(a)))),
    layer_record(
        "hardtanh", _activation_samples((-1.0, 1.5)), lambda a, low, high: np.clip(a, low, high)
    ),
    layer_record("hardsigmoid", _activation_samples(()), lambda a: np.clip(a + 3, 0, 6) / 6),
    layer_record("hardswish", _activation_samples(()), lambda a: a * np.clip(a + 3, 0, 6) / 6),
    layer_record(
        "threshold",
        _activation_samples((0.3, 2.0)),
        lambda a, threshold, value: np.where(a > threshold, a, value),
    ),
    layer_record("softshrink", _activation_samples((0.4,)), _softshrink),
    layer_record("hardshrink", _activation_samples((0.4,)), _hardshrink),
    layer_record("hardshrink_backward", _gradient_samples((0.4,)), _slope_of(_softshrink)),
    _torch_record("celu", _activation_samples((1.0,), (0.5,)), _celu),
    _torch_record("prelu", _prelu_samples, _prelu),
    _torch_record("relu6", _activation_samples(()), lambda a: np.clip(a, 0, 6)),
    _torch_record("rrelu", _activation_samples((0.125, 0.375)), _rrelu),
    _torch_record("selu", _activation_samples(()), _selu),
    _torch_record("softsign", _activation_samples(()), lambda a: a / (1 + np.abs(a))),
    _torch_record("tanhshrink", _activation_samples(()), lambda a: a - np.tanh(a)),
]
