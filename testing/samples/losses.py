"""Records of losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import FLOATS, DType, int64

from ..records import ErrorSample, OpRecord, Sample
from ._networks import ORDER, SUMS, layer_record


def _nll_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    target = make(5, dtype=int64, low=0, high=2)
    yield Sample(make(5, 3), target, None, -100)
    yield Sample(make(5, 3), target, make(3, low=0.5, high=2.0), 1)
    yield Sample(make(2, 3, 4), make(2, 4, dtype=int64, low=0, high=2), None, 0)
    yield Sample(make(0, 3), make(0, dtype=int64), None, -100)


def _nll(a: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    losses = np.zeros(target.shape, a.dtype)
    weights = np.zeros(target.shape, a.dtype)
    for at in np.ndindex(*target.shape):
        label = target[at]
        if label != ignore_index:
            weights[at] = 1 if weight is None else weight[label]
            losses[at] = -a[(at[0], label, *at[1:])] * weights[at]
    return losses, weights


def _nll_errors(make: Any) -> Iterator[ErrorSample]:
    for low, high in ((3, 5), (-2, -1)):
        target = make(5, dtype=int64, low=low, high=high)
        yield ErrorSample(Sample(make(5, 3), target, None, -100), IndexError, "out of bounds")


def _cross_entropy_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for reduction in ("mean", "sum", "none"):
        for sample in _nll_samples(make, dtype):
            if reduction != "mean" or 0 not in sample.args[0].shape:  # the mean of nothing is NaN
                yield Sample(*sample.args, reduction)
    yield Sample(
        make(3, 40, 2), make(3, 2, dtype=int64, low=0, high=39), make(40, low=1, high=2), 7, "mean"
    )


def _cross_entropy_errors(make: Any) -> Iterator[ErrorSample]:
    for error in _nll_errors(make):
        yield ErrorSample(Sample(*error.sample.args, "mean"), error.error, error.match)


def _nll_loss(a: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    losses, weights = _nll(a, target, weight, ignore_index)
    if reduction == "none":
        return losses
    return losses.sum() / (weights.sum() if reduction == "mean" else 1)


def _cross_entropy(a: Any, *options: Any) -> Any:
    return _nll_loss(a - np.log(np.exp(a).sum(1, keepdims=True)), *options)


def _gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _cross_entropy_samples(make, dtype):
        input, target, weight, ignore_index, reduction = sample.args
        g = make(*target.shape) if reduction == "none" else make()
        yield Sample(g, input, target, weight, ignore_index, reduction)


def _gradient_of(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the difference quotients of each element."""

    def gradient(g: Any, a: Any, *options: Any) -> Any:
        result = np.zeros(a.shape)
        for at in np.ndindex(*a.shape):
            step = np.zeros(a.shape)
            step[at] = 1e-5
            result[at] = np.sum(g * (loss(a + step, *options) - loss(a - step, *options))) / 2e-5
        return result

    return gradient


def _records(name: str, loss: Callable[..., Any]) -> Iterator[OpRecord]:
    yield OpRecord(
        name,
        _cross_entropy_samples,
        loss,
        FLOATS,
        errors=_cross_entropy_errors,
        atol=SUMS,
        rtol=ORDER,
        torch="",
    )
    yield OpRecord(
        f"{name}_gradient",
        _gradient_samples,
        _gradient_of(loss),
        FLOATS,
        atol={**SUMS, "float64": 1e-9},  # the reference is a difference quotient
        rtol=ORDER,
        torch="",
    )


def _bce_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3, low=0.1, high=0.9), make(4, 3, low=0.1, high=0.9))
    yield Sample(make(low=0.1, high=0.9), make(low=0.1, high=0.9))
    yield Sample(make(0, 3), make(0, 3))


def _bce(a: Any, target: Any) -> Any:
    return -(target * np.log(a) + (1 - target) * np.log(1 - a))


RECORDS = [
    OpRecord(
        "negative_log_likelihood",
        _nll_samples,
        _nll,
        FLOATS,
        errors=_nll_errors,
        atol=SUMS,
        rtol=ORDER,
        torch="",
    ),
    *_records("class_nll_loss", _nll_loss),
    *_records("class_cross_entropy", _cross_entropy),
    layer_record("binary_cross_entropy_terms", _bce_samples, _bce),
]
