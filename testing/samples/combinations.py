"""Records of what the public ops of several steps leave to kernels, after their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

import tensorplug.nn  # noqa: F401  registers the ops of gates
from tensorplug.core.dtypes import FLOATS, DType, float32, float64

from ..records import OpRecord, Sample

# Half precision rounds at each step of a body, and once in a kernel.
_STEPS = {"float16": 4e-3, "bfloat16": 3e-2}
_STEPS_ABSOLUTE = {"float16": 5e-2, "bfloat16": 5e-1, "float32": 2e-5}


def _of(count: int, *numbers: Any, low: float = 1, high: float = 4) -> Callable[..., Any]:
    """Return samples of so many tensors followed by numbers."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shape in ((5,), (), (0, 3), (2, 3)):
            tensors = [make(*shape, low=low, high=high, exclude_zero=True) for _ in range(count)]
            yield Sample(*tensors, *numbers)

    return samples


def _lerp_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for weight in (0.25, 0.75, 1, -2.5):
        yield Sample(make(4), make(4), weight)
    yield Sample(make(3, 1), make(4), make(3, 4, low=0, high=1))
    yield Sample(make(), make(3), make())
    yield Sample(make(0), make(0), 0.5)


def _product_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _of(3, 1)(make, dtype)
    last = make(2, 1, low=1, high=4, exclude_zero=True)
    yield Sample(make(2, 3), make(3), last, -0.5)


def _bounds_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6), 1, 5)
    yield Sample(make(4), 5, 1)
    yield Sample(make(3, 4), make(4, low=0, high=2), make(3, 1, low=3, high=6))
    yield Sample(make(3, 4), make(low=0, high=2), 3)
    yield Sample(make(0), 1, 2)


def _within_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(6), make(6), 1, 5)
    yield Sample(make(3, 4), make(3, 4), make(3, 4, low=0, high=2), 3)
    yield Sample(make(0), make(0), 1, 2)


def _logit_slope_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for eps in (None, 0.125):
        yield Sample(make(6), make(6, low=0.05, high=0.95), eps)
    yield Sample(make(0), make(0), None)


def _logit_slope(g: Any, x: Any, eps: float | None) -> Any:
    inside = True if eps is None else (x >= eps) & (x <= 1 - eps)
    return np.where(inside, g / (x * (1 - x)), 0)


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


def _record(op: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    options = {"dtypes": FLOATS, "rtol": _STEPS, "atol": _STEPS_ABSOLUTE, **options}
    return OpRecord(op, samples, reference, torch="", **options)


RECORDS = [
    _record("_add_scaled", _of(2, -0.75), lambda a, b, alpha: a + alpha * b),
    _record("_addcdiv", _product_samples, lambda a, b, c, value: a + value * b / c),
    _record("_addcmul", _product_samples, lambda a, b, c, value: a + value * b * c),
    _record("_clamp", _bounds_samples, lambda a, low, high: np.minimum(np.maximum(a, low), high)),
    _record(
        "_clamp_gradient",
        _within_samples,
        lambda g, a, low, high: np.where((a >= low) & (a <= high), g, 0),
    ),
    _record("_hypot", _of(2), np.hypot),
    _record("_lerp", _lerp_samples, lambda a, b, w: a + w * (b - a)),
    _record("_logaddexp", _of(2), np.logaddexp),
    _record("_trigamma", _of(1), lambda a: special.zeta(2, a)),
    _record("glu", _halves_samples, _gated),
    _record("glu_backward", _halves_slope_samples, _gated_slope),
    _record("_logit_gradient", _logit_slope_samples, _logit_slope, dtypes=(float32, float64)),
]
