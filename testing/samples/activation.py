"""Records of the activations that are made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorplug.nn  # noqa: F401  registers the ops
from tensorplug.core.dtypes import FLOATS, DType, float32

from ..records import OpRecord, Sample
from .networks import ORDER, SUMS
from .random import _RANDOM as RANDOM


def _samples(*options: tuple[Any, ...]) -> Callable[[Any, DType], Iterator[Sample]]:
    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for option in options:
            yield Sample(make(2, 5), *option)
            yield Sample(make(), *option)
            yield Sample(make(0, 3), *option)

    return samples


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
    return 1.0507009873554805 * _elu(a, 1.6732632423543772)


def _elu(a: Any, alpha: float) -> Any:
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0)))


def _rrelu(a: Any, lower: float, upper: float) -> Any:
    return np.where(a > 0, a, a * (lower + upper) / 2)


def _record(op: str, samples: Any, reference: Any) -> OpRecord:
    torch = f"nn.functional.{op}"
    return OpRecord(op, samples, reference, FLOATS, atol=SUMS, rtol=ORDER, torch=torch)


def _gumbel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 0.5, True, 1e-10, 0)


def _sums_to_one(result: Any, sample: Sample) -> None:
    dim = sample.args[4] if len(sample.args) > 4 else -1
    sums = result.to(float32).sum(dim)
    assert bool(((sums - 1).abs() < 2e-2).all())


RECORDS = [
    OpRecord(
        "gumbel_softmax",
        _gumbel_samples,
        dtypes=FLOATS,
        gradient=False,
        check=_sums_to_one,
        skips=RANDOM,
        torch="",
    ),
    _record("celu", _samples((1.0,), (0.5,)), _celu),
    _record("prelu", _prelu_samples, _prelu),
    _record("relu6", _samples(()), lambda a: np.clip(a, 0, 6)),
    _record("rrelu", _samples((0.125, 0.375)), _rrelu),
    _record("selu", _samples(()), _selu),
    _record("softsign", _samples(()), lambda a: a / (1 + np.abs(a))),
    _record("tanhshrink", _samples(()), lambda a: a - np.tanh(a)),
]
