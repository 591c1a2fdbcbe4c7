"""Records of the losses of classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorplug.nn  # noqa: F401  registers the ops
from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample
from ._differences import ROUGH, by_differences
from ._networks import ORDER, SUMS


def _classes_samples(make: Any, dtype: DType) -> Iterator[tuple[Any, ...]]:
    """Yield input, target, weight and the ignored class."""
    target = make(5, dtype=int64, low=0, high=2)
    target[0] = 0  # the mean of nothing is NaN
    yield make(5, 3), target, None, -100
    yield make(5, 3), target, make(3, low=0.5, high=2.0), 1
    yield make(2, 3, 4), make(2, 4, dtype=int64, low=1, high=2), None, 0
    yield make(0, 3), make(0, dtype=int64), None, -100


def _nll(a: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    losses = np.zeros(target.shape, a.dtype)
    weights = np.zeros(target.shape, a.dtype)
    for at in np.ndindex(*target.shape):
        label = target[at]
        if label != ignore_index:
            weights[at] = 1 if weight is None else weight[label]
            losses[at] = -a[(at[0], label, *at[1:])] * weights[at]
    return losses, weights


def _loss_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for reduction in ("mean", "sum", "none"):
        for *tensors, ignored in _classes_samples(make, dtype):
            if reduction != "mean" or 0 not in tensors[0].shape:  # the mean of nothing is NaN
                yield Sample(*tensors, ignore_index=ignored, reduction=reduction)
    target, weight = make(3, 2, dtype=int64, low=0, high=39), make(40, low=1, high=2)
    yield Sample(make(3, 40, 2), target, weight, ignore_index=7)


def _loss_errors(make: Any) -> Iterator[ErrorSample]:
    for low, high in ((3, 5), (-2, -1)):
        target = make(5, dtype=int64, low=low, high=high)
        yield ErrorSample(Sample(make(5, 3), target), IndexError, "out of bounds")


def _nll_loss(
    a: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    losses, weights = _nll(a, target, weight, ignore_index)
    if reduction == "none":
        return losses
    return losses.sum() / (weights.sum() if reduction == "mean" else 1)


def _cross_entropy(a: Any, *options: Any, **named: Any) -> Any:
    return _nll_loss(a - np.log(np.exp(a).sum(1, keepdims=True)), *options, **named)


def _gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _loss_samples(make, dtype):
        input, target, weight = sample.args
        ignore_index, reduction = [
            sample.kwargs.get(name, default)
            for name, default in (("ignore_index", -100), ("reduction", "mean"))
        ]
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
        _loss_samples,
        loss,
        FLOATS,
        errors=_loss_errors,
        atol=SUMS,
        rtol=ORDER,
        torch="",
    )
    yield OpRecord(
        f"{name}_backward",
        _gradient_samples,
        _gradient_of(loss),
        FLOATS,
        atol={**SUMS, "float64": 1e-9},  # the reference is a difference quotient
        rtol=ORDER,
        torch="",
    )


RECORDS = [
    *_records("nll_loss", _nll_loss),
    *_records("cross_entropy", _cross_entropy),
]


# --- losses of each element ------------------------------------------------------------------------


def _of_elements(*options: dict[str, Any], low: float = -2, high: float = 2) -> Any:
    """Return samples of an input and a target of one shape."""

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        for shape in ((4, 3), (), (0, 3)):
            for option in options or ({},):
                pair = [make(*shape, low=low, high=high, exclude_zero=True) for _ in range(2)]
                reduction = "sum" if 0 in shape else "mean"
                yield Sample(*pair, **{"reduction": reduction, **option})

    return samples


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reference of a loss, from that of its elements."""

    def reference(*args: Any, reduction: str = "mean", **named: Any) -> Any:
        losses = np.asarray(function(*args, **named))
        return losses if reduction == "none" else getattr(np, reduction)(losses)

    return reference


def _log_sigmoid(a: Any) -> Any:
    return -np.log1p(np.exp(-a))


def _bce(a: Any, target: Any, weight: Any = 1) -> Any:
    return -weight * (target * np.log(a) + (1 - target) * np.log(1 - a))


def _bce_logits(a: Any, target: Any, weight: Any = 1, pos_weight: Any = 1) -> Any:
    return -weight * (pos_weight * target * _log_sigmoid(a) + (1 - target) * _log_sigmoid(-a))


def _bce_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _of_elements(low=0.1, high=0.9)(make, dtype)
    weight = make(3, low=0.5, high=1.5)
    pair = [make(2, 3, low=0.1, high=0.9) for _ in range(2)]
    yield Sample(*pair, weight, reduction="none")


def _bce_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    pair = [make(2, 3, low=0.2, high=0.8) for _ in range(2)]
    yield Sample(make(2, 3), *pair, make(3, low=0.5, high=1.5), "none")
    yield Sample(make(), *pair, None, "mean")
    yield Sample(make(), make(0, 3), make(0, 3), None, "sum")


def _bce_backward(g: Any, a: Any, target: Any, weight: Any, reduction: str) -> Any:
    share = g / a.size if reduction == "mean" else g
    return share * (1 if weight is None else weight) * (a - target) / (a * (1 - a))


def _smooth(a: Any, target: Any, beta: float = 1.0) -> Any:
    distance = np.abs(a - target)
    return np.where(distance < beta, 0.5 * distance**2 / beta, distance - 0.5 * beta)


def _smooth_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3), make(2, 3), "none", 0.5)
    yield Sample(make(), make(2, 3), make(2, 3), "mean", 1.0)
    yield Sample(make(), make(4), make(4), "sum", 2.0)
    yield Sample(make(), make(0, 3), make(0, 3), "sum", 1.0)


def _smooth_backward(g: Any, a: Any, target: Any, reduction: str, beta: float) -> Any:
    return _huber_backward(g, a, target, reduction, beta) / beta


def _huber_backward(g: Any, a: Any, target: Any, reduction: str, delta: float) -> Any:
    share = g / a.size if reduction == "mean" else g
    return np.clip(a - target, -delta, delta) * share


def _squares_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), make(2, 3), make(2, 3), "none")
    yield Sample(make(), make(2, 3), make(2, 3), "mean")
    yield Sample(make(), make(4), make(4), "sum")
    yield Sample(make(), make(0, 3), make(0, 3), "sum")


def _squares_backward(g: Any, a: Any, target: Any, reduction: str) -> Any:
    return 2 * _huber_backward(g, a, target, reduction, np.inf)


def _poisson(a: Any, target: Any, log_input: bool = True) -> Any:
    return np.exp(a) - target * a if log_input else a - target * np.log(a + 1e-8)


def _gaussian_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 3), make(4, 3, low=0.5, high=2.0))
    yield Sample(make(4, 3), make(4, 3), make(4, low=0.5, high=2.0), reduction="none")
    yield Sample(make(0, 3), make(0, 3), 0.5, full=True, reduction="sum")


def _gaussian(a: Any, target: Any, var: Any, full: bool = False) -> Any:
    var = np.asarray(var)
    var = var[:, None] if 0 < var.ndim < a.ndim else var
    return 0.5 * (np.log(var) + (a - target) ** 2 / var + full * np.log(2 * np.pi))


def _ranking_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((5,), (), (0,)):
        signs = make(*shape, exclude_zero=True).sign()
        yield Sample(make(*shape), make(*shape), signs, 0.25, reduction="sum")


def _vectors_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    signs = make(4, exclude_zero=True).sign()
    yield Sample(make(4, 3), make(4, 3), signs, 0.1, reduction="none")
    yield Sample(make(3), make(3), make(exclude_zero=True).sign())
    yield Sample(make(0, 3), make(0, 3), make(0), reduction="none")


def _cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _cosine_embedding(a: Any, b: Any, target: Any, margin: float = 0) -> Any:
    return np.where(target == 1, 1 - _cosine(a, b), np.maximum(_cosine(a, b) - margin, 0))


def _triplet_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 3), make(4, 3), reduction="none")
    yield Sample(make(3), make(3), make(3))
    yield Sample(make(0, 3), make(0, 3), make(0, 3), reduction="none")


def _triplet(a: Any, near: Any, far: Any, margin: float = 1.0) -> Any:
    one, two = (np.sqrt(((a - other + 1e-6) ** 2).sum(-1)) for other in (near, far))
    return np.maximum(margin + one - two, 0)


def _classes(make: Any, *shape: int, high: int = 2) -> Any:
    return make(*shape, dtype=int64, low=0, high=high)


def _multi_margin_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), _classes(make, 4))
    yield Sample(make(4, 3), _classes(make, 4), 2, 0.5, make(3, low=0.5, high=2), reduction="none")
    yield Sample(make(3), _classes(make))
    yield Sample(make(0, 3), _classes(make, 0), reduction="none")


def _multi_margin(a: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    rows, labels = np.atleast_2d(a), np.atleast_1d(target)
    of = np.arange(len(rows))
    terms = np.maximum(margin - rows[of, labels][:, None] + rows, 0) ** p
    if weight is not None:
        terms = terms * weight[labels][:, None]
    terms[of, labels] = 0
    return terms.sum(1).reshape(target.shape) / rows.shape[1]


def _multilabel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 3), _classes(make, 2, 3, high=1) - 1, reduction="none")
    yield Sample(make(3), _classes(make, 3, high=1))
    yield Sample(make(0, 3), _classes(make, 0, 3), reduction="none")


def _multilabel(a: Any, target: Any) -> Any:
    rows, labels = np.atleast_2d(a), np.atleast_2d(target)
    found = []
    for row, given in zip(rows, labels, strict=True):
        ends = np.flatnonzero(given < 0)
        wanted = given[: ends[0]] if len(ends) else given
        others = np.setdiff1d(np.arange(len(row)), wanted)
        terms = [np.maximum(1 - row[w] + row[others], 0).sum() for w in wanted]
        found.append(sum(terms) / len(row))
    return np.reshape(found, a.shape[:-1])


def _multi_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    options = (make(4, 3), _classes(make, 4))
    yield Sample(make(), *options, 1, 1.0, None, "mean")
    yield Sample(make(4), *options, 2, 0.5, make(3, low=0.5, high=2), "none")
    yield Sample(make(), make(3), _classes(make), 1, 1.0, None, "sum")
    yield Sample(make(0), make(0, 3), _classes(make, 0), 1, 1.0, None, "none")


def _multilabel_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2), make(2, 3), _classes(make, 2, 3, high=1) - 1, "none")
    yield Sample(make(), make(3), _classes(make, 3, high=1), "mean")
    yield Sample(make(0), make(0, 3), _classes(make, 0, 3), "none")


def _backward(of: Any) -> Any:
    """Return the reference of the gradient of a loss whose last argument is the reduction."""

    def gradient(g: Any, a: Any, *arguments: Any) -> Any:
        *rest, reduction = arguments

        def total(a: Any) -> Any:
            losses = of(a, *rest)
            return losses.mean() if reduction == "mean" else losses

        return by_differences(total, 0)(g, a)

    return gradient


def _soft_multilabel(a: Any, target: Any) -> Any:
    return -(target * _log_sigmoid(a) + (1 - target) * _log_sigmoid(-a)).mean(-1)


def _soft_multilabel_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 3, low=0, high=1), reduction="none")
    yield Sample(make(3), make(3, low=0, high=1))
    yield Sample(make(0, 3), make(0, 3), reduction="none")


def _similarity_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 3), 1)
    yield Sample(make(4, 3), make(3), -1)
    yield Sample(make(0, 3), make(0, 3), 1)


def _similarity(a: Any, b: Any, dim: int) -> Any:
    return _cosine(a, b)


def _distance_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), make(4, 3))
    yield Sample(make(4, 3), make(3), 1.0, 1e-6, True)
    yield Sample(make(0, 3), make(0, 3))


def _distance(a: Any, b: Any, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return np.sum(np.abs(a - b + eps) ** p, -1, keepdims=keepdim) ** (1 / p)


def _linear_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5, 2), make(3, 2), _classes(make, 5))
    yield Sample(make(5, 2), make(3, 2), _classes(make, 5), linear_bias=make(3), reduction="none")
    yield Sample(make(0, 2), make(3, 2), _classes(make, 0), reduction="none")


def _linear(a: Any, w: Any, target: Any, linear_bias: Any = 0, reduction: str = "mean") -> Any:
    scores = a @ w.T + linear_bias
    return _cross_entropy(scores, target, None, -100, reduction)


def _ctc_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    logs = make(4, 2, 3).log_softmax(2)
    yield Sample(logs, _classes(make, 2, 2, high=1) + 1, [4, 3], [1, 2], reduction="none")
    yield Sample(make(3, 3).log_softmax(1), _classes(make, 1, high=1) + 1, [3], [1])
    yield Sample(make(4, 2, 3).log_softmax(2), _classes(make, 2, 0), [4, 3], [0, 0])


def _ctc(a: Any, target: Any, steps: Any, sizes: Any, reduction: str = "mean") -> Any:
    logs = a if a.ndim == 3 else a[:, None]
    targets = np.atleast_2d(target)
    found = []
    for n, (count, size) in enumerate(zip(steps, sizes, strict=True)):
        total = 0.0
        for path in itertools.product(range(logs.shape[2]), repeat=count):
            shown = [c for c, _ in itertools.groupby(path) if c]
            if shown == list(targets[n, :size]):
                total += np.exp(sum(logs[t, n, c] for t, c in enumerate(path)))
        found.append(-np.log(total))
    losses = np.array(found)
    return losses if reduction == "none" else (losses / np.maximum(sizes, 1)).mean()


def _ctc_backward_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    labels = _classes(make, 2, 2, high=1) + 1
    for shape, reduction in (((2,), "none"), ((), "mean")):
        yield Sample(make(*shape), make(4, 2, 3), labels, (4, 3), (1, 2), 0, reduction, False)
    yield Sample(make(), make(4, 2, 3), _classes(make, 2, 0), (4, 3), (0, 0), 0, "mean", False)


def _ctc_backward(g: Any, a: Any, target: Any, *arguments: Any) -> Any:
    return by_differences(_ctc, 0)(g, a, target, *arguments[:2], arguments[3])


_UNIT = {"low": 0.1, "high": 0.9}
_LOSSES: dict[str, tuple[Any, Any]] = {
    "binary_cross_entropy": (_bce_samples, _bce),
    "binary_cross_entropy_with_logits": (_bce_samples, _bce_logits),
    "cosine_embedding_loss": (_vectors_samples, _cosine_embedding),
    "gaussian_nll_loss": (_gaussian_samples, _gaussian),
    "hinge_embedding_loss": (
        lambda make, dtype: (
            Sample(make(*shape), make(*shape, exclude_zero=True).sign(), reduction="sum")
            for shape in ((5,), (), (0, 3))
        ),
        lambda a, target: np.where(target == 1, a, np.maximum(1 - a, 0)),
    ),
    "huber_loss": (_of_elements({"delta": 0.5}), lambda a, t, delta: delta * _smooth(a, t, delta)),
    "kl_div": (
        _of_elements({"reduction": "sum"}, **_UNIT),
        lambda a, target: target * (np.log(target) - a),
    ),
    "l1_loss": (_of_elements(), lambda a, target: np.abs(a - target)),
    "margin_ranking_loss": (
        _ranking_samples,
        lambda a, b, target, margin: np.maximum(margin - target * (a - b), 0),
    ),
    "mse_loss": (_of_elements({}, {"reduction": "none"}), lambda a, target: (a - target) ** 2),
    "multi_margin_loss": (_multi_margin_samples, _multi_margin),
    "multilabel_margin_loss": (_multilabel_samples, _multilabel),
    "multilabel_soft_margin_loss": (_soft_multilabel_samples, _soft_multilabel),
    "poisson_nll_loss": (_of_elements({}, {"log_input": False}, low=0.2), _poisson),
    "smooth_l1_loss": (_of_elements({}, {"beta": 0.5}), _smooth),
    "soft_margin_loss": (_of_elements(), lambda a, target: -_log_sigmoid(a * target)),
    "triplet_margin_loss": (_triplet_samples, _triplet),
    "triplet_margin_with_distance_loss": (_triplet_samples, _triplet),
}
_OTHERS: dict[str, tuple[Any, Any]] = {
    "binary_cross_entropy_backward": (_bce_backward_samples, _bce_backward),
    "huber_loss_backward": (_smooth_backward_samples, _huber_backward),
    "mse_loss_backward": (_squares_backward_samples, _squares_backward),
    "smooth_l1_loss_backward": (_smooth_backward_samples, _smooth_backward),
    "cosine_similarity": (_similarity_samples, _similarity),
    "ctc_loss": (_ctc_samples, _ctc),
    "linear_cross_entropy": (_linear_samples, _linear),
    "pairwise_distance": (_distance_samples, _distance),
}

_BACKWARD: dict[str, tuple[Any, Any]] = {
    "ctc_loss_backward": (_ctc_backward_samples, _ctc_backward),
    "multi_margin_loss_backward": (_multi_backward_samples, _backward(_multi_margin)),
    "multilabel_margin_loss_backward": (_multilabel_backward_samples, _backward(_multilabel)),
}
RECORDS += [
    OpRecord(name, samples, reference, (float32, float64), atol=ROUGH, rtol=ROUGH, torch="")
    for name, (samples, reference) in _BACKWARD.items()
]

# Several steps, each rounded to half precision; products of differences that cancel.
_ROUNDED = {"float16": 6e-2, "bfloat16": 4e-1, "float32": 1e-5}
RECORDS += [
    OpRecord(name, samples, reference, FLOATS, atol=_ROUNDED, rtol=_ROUNDED, torch="")
    for name, (samples, reference) in [
        *[(name, (samples, _reduced(of))) for name, (samples, of) in _LOSSES.items()],
        *_OTHERS.items(),
    ]
]
