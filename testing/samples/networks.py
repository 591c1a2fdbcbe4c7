"""Records of the ops of neural networks, which :mod:`tensorplug.nn` registers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorplug.nn  # noqa: F401  registers the ops
from tensorplug.core.dtypes import FLOATS, DType, int64

from ..records import OpRecord, Sample
from .reductions import INEXACT

# Sums of a dozen products, each input rounded to half precision.
SUMS = {"float16": 3e-2, "bfloat16": 2e-1}
# Sums of a dozen products come out by their order.
ORDER = {"float32": 1e-5}


# --- windows ------------------------------------------------------------------------------------


def _offsets(kernel: Any) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, kernel))


def _places(at: Any, where: Any, stride: Any, dilation: Any) -> tuple[Any, ...]:
    return tuple(
        slice(i * d, i * d + s * (w - 1) + 1, s)
        for i, w, s, d in zip(at, where, stride, dilation, strict=True)
    )


def _positions(size: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[int, ...]:
    return tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
    )


def _unfold_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 5), (2,), (1,), (1,))
    yield Sample(make(1, 2, 5, 6), (2, 3), (2, 1), (1, 2))
    yield Sample(make(1, 1, 3, 4, 3), (2, 2, 2), (1, 2, 1), (1, 1, 2))
    yield Sample(make(0, 2, 4), (2,), (1,), (1,))


def _unfold(a: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    where = _positions(a.shape[2:], kernel, stride, dilation)
    result = np.empty((*a.shape[:2], *where, *kernel), a.dtype)
    for at in _offsets(kernel):
        place: Any = (..., *_places(at, where, stride, dilation))
        offset: Any = (..., *at)
        result[offset] = a[place]
    return result


def _fold_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(2, 1, 4, 2), (5,), (2,), (1,), (1,))
    yield Sample(make(1, 2, 2, 2, 2, 3), (5, 6), (2, 3), (2, 1), (1, 2))
    yield Sample(make(0, 1, 4, 2), (5,), (2,), (1,), (1,))


def _fold(windows: Any, size: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    where = windows.shape[2 : 2 + len(kernel)]
    result = np.zeros((*windows.shape[:2], *size), windows.dtype)
    for at in _offsets(kernel):
        result[(..., *_places(at, where, stride, dilation))] += windows[(..., *at)]
    return result


# --- convolution --------------------------------------------------------------------------------

# (spatial size, kernel, stride, padding, dilation, groups)
_CONVOLUTIONS: list[tuple[Any, ...]] = [
    ((6,), (3,), (1,), (0,), (1,), 1),
    ((5, 6), (2, 3), (2, 1), (1, 0), (1, 2), 2),
    ((4, 4), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 4, 3), (2, 1, 2), (1, 2, 1), (0, 0, 1), (1, 1, 1), 1),
]


def _output(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    wide = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    return _positions(wide, kernel, stride, dilation)


def _convolution_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        bias = make(4) if groups == 1 else None
        yield Sample(make(2, 2, *size), make(4, 2 // groups, *kernel), bias, *options, groups)
    yield Sample(make(0, 2, 4), make(4, 2, 2), None, (1,), (0,), (1,), 1)


def _input_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        gradient = make(2, 4, *_output(size, kernel, *options))
        yield Sample(gradient, make(4, 2 // groups, *kernel), size, *options, groups)
    yield Sample(make(0, 4, 3), make(4, 2, 2), (4,), (1,), (0,), (1,), 1)


def _weight_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for size, kernel, *options, groups in _CONVOLUTIONS:
        gradient = make(2, 4, *_output(size, kernel, *options))
        yield Sample(make(2, 2, *size), gradient, kernel, *options, groups)
    yield Sample(make(0, 2, 4), make(0, 4, 3), (2,), (1,), (0,), (1,), 1)


def _padded(a: Any, padding: Any) -> Any:
    return np.pad(a, [(0, 0), (0, 0), *[(p, p) for p in padding]])


def _pairs(outputs: int, inputs: int, groups: int) -> Iterator[tuple[int, int, int]]:
    """Yield which output channel reads which input channel, and by which column of the weight."""
    for o in range(outputs):
        group = o // (outputs // groups)
        for c in range(inputs // groups):
            yield o, group * (inputs // groups) + c, c


def _convolution(
    a: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    x = _padded(a, padding)
    kernel = w.shape[2:]
    where = _positions(x.shape[2:], kernel, stride, dilation)
    result = np.zeros((len(a), len(w), *where), np.result_type(a, w))
    for o, i, c in _pairs(len(w), a.shape[1], groups):
        for at in _offsets(kernel):
            result[:, o] += (
                w[(o, c, *at)] * x[(slice(None), i, *_places(at, where, stride, dilation))]
            )
    return result if b is None else result + b.reshape(-1, *[1] * len(where))


def _convolution_input(
    g: Any, w: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    inputs = w.shape[1] * groups
    wide = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    result = np.zeros((len(g), inputs, *wide), np.result_type(g, w))
    for o, i, c in _pairs(len(w), inputs, groups):
        for at in _offsets(w.shape[2:]):
            place: Any = (slice(None), i, *_places(at, g.shape[2:], stride, dilation))
            result[place] += w[(o, c, *at)] * g[:, o]
    inner: Any = (..., *[slice(p, p + n) for p, n in zip(padding, size, strict=True)])
    return result[inner]


def _convolution_weight(
    a: Any, g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    x = _padded(a, padding)
    outputs, inputs = g.shape[1], a.shape[1]
    result = np.zeros((outputs, inputs // groups, *kernel), np.result_type(a, g))
    for o, i, c in _pairs(outputs, inputs, groups):
        for at in _offsets(kernel):
            seen = x[(slice(None), i, *_places(at, g.shape[2:], stride, dilation))]
            result[(o, c, *at)] = np.sum(seen * g[:, o])
    return result


# --- linear maps, tables, normalisation -----------------------------------------------------------


def _linear_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3), make(4, 3), make(4))
    yield Sample(make(5, 3), make(4, 3))
    yield Sample(make(2, 5, 3), make(4, 3), make(4))
    yield Sample(make(2, 3), make(3))
    yield Sample(make(0, 3), make(4, 3), make(4))


def _linear(a: Any, w: Any, b: Any = None) -> Any:
    result = np.einsum("...i,i->..." if w.ndim == 1 else "...i,oi->...o", a, w)
    return result if b is None else result + b


def _linear_activation_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for name in _ACTIVATIONS:
        yield Sample(make(5, 3), make(4, 3), make(4), name)
    yield Sample(make(3), make(4, 3), None, "relu")
    yield Sample(make(2, 5, 3), make(4, 3), make(4), "gelu")
    yield Sample(make(2, 3), make(3), make(), "tanh")
    yield Sample(make(0, 3), make(4, 3), make(4), "sigmoid")


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda a: np.maximum(a, 0),
    "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "gelu": lambda a: _gelu(a, "none"),
    "gelu_tanh": lambda a: _gelu(a, "tanh"),
    "silu": lambda a: a / (1 + np.exp(-a)),
}


def _linear_activation(a: Any, w: Any, b: Any, activation: str) -> Any:
    return _ACTIVATIONS[activation](_linear(a, w, b))


def _embedding_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5, 3), make(4, dtype=int64, low=0, high=4), -1, False)
    yield Sample(make(5, 3), make(2, 2, dtype=int64, low=0, high=4), -1, False)
    yield Sample(make(5, 3), make(0, dtype=int64, low=0, high=4), -1, False)


def _standardize_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4, 3), (0,), 1e-3)
    yield Sample(make(2, 3, 4), (0, 2), 1e-5)
    yield Sample(make(2, 6), (1,), 0.1)
    yield Sample(make(0, 3), (1,), 0.1)


def _standardize(a: Any, dim: Any, eps: float) -> Any:
    mean = a.mean(dim, keepdims=True)
    rstd = 1 / np.sqrt(a.var(dim, keepdims=True) + eps)
    return (a - mean) * rstd, mean, rstd


def _standardize_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(
        make(4, 3), make(1, 3), make(1, 3), make(4, 3), make(1, 3, low=0.5, high=2.0), (0,)
    )
    yield Sample(
        make(2, 3, 4), make(1, 3, 1), make(1, 3, 1), make(2, 3, 4),
        make(1, 3, 1, low=0.5, high=2.0), (0, 2),
    )  # fmt: skip
    yield Sample(make(0, 3), make(0, 1), make(0, 1), make(0, 3), make(0, 1), (1,))


def _standardize_gradient(g: Any, gm: Any, gr: Any, output: Any, rstd: Any, dim: Any) -> Any:
    n = math.prod(output.shape[d] for d in dim)
    mean = g.mean(dim, keepdims=True)
    along = (g * output).mean(dim, keepdims=True)
    return rstd * (g - mean - output * along) + gm / n - gr * rstd**2 * output / n


def _batch_normalize_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample([make(4, 3), make(3), make(3)], 1e-3)
    yield Sample([make(2, 3, 5), make(3), make(3)], 1e-5)
    yield Sample([make(3, 2, 4, 3), make(2), make(2)], 0.1)
    yield Sample([make(2, 0, 3), make(0), make(0)], 0.1)


def _batch_normalize(inputs: Any, eps: float) -> Any:
    a, weight, bias = inputs
    shape = (1, -1, *[1] * (a.ndim - 2))
    output, mean, rstd = _standardize(a, (0, *range(2, a.ndim)), eps)
    return output * weight.reshape(shape) + bias.reshape(shape), mean.reshape(-1), rstd.reshape(-1)


def _batch_normalize_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for shape in ((4, 3), (2, 3, 5), (3, 2, 4, 3), (2, 0, 3)):
        c = shape[1]
        yield Sample(
            make(*shape), make(c), make(c), make(*shape), make(c), make(c),
            make(c, low=0.5, high=2.0),
        )  # fmt: skip


def _batch_normalize_gradient(
    g: Any, gm: Any, gr: Any, a: Any, weight: Any, mean: Any, rstd: Any
) -> Any:
    shape = (1, -1, *[1] * (a.ndim - 2))
    dims = (0, *range(2, a.ndim))
    gm, gr, weight, mean, rstd = (v.reshape(shape) for v in (gm, gr, weight, mean, rstd))
    output = (a - mean) * rstd
    g_input = _standardize_gradient(g * weight, gm, gr, output, rstd, dims)
    return g_input, (g * output).sum(dims), g.sum(dims)


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


def _gelu(a: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return a * 0.5 * (1 + erf(a / math.sqrt(2)))


def _softplus(a: Any, beta: float, threshold: float) -> Any:
    return np.where(a * beta > threshold, a, np.log1p(np.exp(np.minimum(a * beta, 500))) / beta)


def _record(op: str, samples: Any, reference: Any, **options: Any) -> OpRecord:
    options = {"dtypes": FLOATS, "atol": SUMS, "rtol": ORDER, "torch": "", **options}
    return OpRecord(op, samples, reference, **options)


RECORDS = [
    _record("unfold_windows", _unfold_samples, _unfold, dtypes=INEXACT),
    _record("fold_windows", _fold_samples, _fold, dtypes=INEXACT),
    _record("convolution", _convolution_samples, _convolution, dtypes=INEXACT),
    _record("convolution_input", _input_samples, _convolution_input, dtypes=INEXACT),
    _record("convolution_weight", _weight_samples, _convolution_weight, dtypes=INEXACT),
    _record("linear", _linear_samples, _linear, dtypes=INEXACT),
    _record("linear_activation", _linear_activation_samples, _linear_activation),
    _record("embedding_rows", _embedding_samples, lambda w, i, padding, by_frequency: w[i]),
    _record("standardize", _standardize_samples, _standardize),
    _record("standardize_gradient", _standardize_gradient_samples, _standardize_gradient),
    _record("batch_normalize", _batch_normalize_samples, _batch_normalize),
    _record(
        "batch_normalize_gradient", _batch_normalize_gradient_samples, _batch_normalize_gradient
    ),
    _record(
        "leaky_relu", _activation_samples((0.1,)), lambda a, slope: np.where(a > 0, a, a * slope)
    ),
    _record("elu", _activation_samples((1.0, 1.0, 1.0), (0.7, 1.1, 2.0)), _elu),
    _record("gelu", _activation_samples(("none",), ("tanh",)), _gelu),
    _record("silu", _activation_samples(()), lambda a: a * _sigmoid(a)),
    _record("softplus", _activation_samples((1.0, 20.0), (2.0, 1.0)), _softplus),
    _record("logsigmoid", _activation_samples(()), lambda a: -np.log1p(np.exp(-a))),
    _record(
        "leaky_relu_backward",
        _gradient_samples((0.1,)),
        _slope_of(lambda a, slope: np.where(a > 0, a, a * slope)),
    ),
    _record("elu_backward", _gradient_samples((1.0, 1.0, 1.0), (0.7, 1.1, 2.0)), _slope_of(_elu)),
    _record("gelu_backward", _gradient_samples(("none",), ("tanh",)), _slope_of(_gelu)),
    _record("silu_backward", _gradient_samples(()), _slope_of(lambda a: a * _sigmoid(a))),
    _record("softplus_backward", _gradient_samples((1.0, 20.0), (2.0, 20.0)), _slope_of(_softplus)),
    _record(
        "logsigmoid_backward", _gradient_samples(()), _slope_of(lambda a: -np.log1p(np.exp(-a)))
    ),
    _record(
        "hardtanh_backward",
        _gradient_samples((-1.0, 1.5)),
        _slope_of(lambda a, low, high: np.clip(a, low, high)),
    ),
    _record(
        "hardsigmoid_backward",
        _gradient_samples(()),
        _slope_of(lambda a: np.clip(a + 3, 0, 6) / 6),
    ),
    _record(
        "hardswish_backward",
        _gradient_samples(()),
        _slope_of(lambda a: a * np.clip(a + 3, 0, 6) / 6),
    ),
    _record("mish", _activation_samples(()), lambda a: a * np.tanh(np.log1p(np.exp(a)))),
    _record(
        "hardtanh", _activation_samples((-1.0, 1.5)), lambda a, low, high: np.clip(a, low, high)
    ),
    _record("hardsigmoid", _activation_samples(()), lambda a: np.clip(a + 3, 0, 6) / 6),
    _record("hardswish", _activation_samples(()), lambda a: a * np.clip(a + 3, 0, 6) / 6),
    _record(
        "threshold",
        _activation_samples((0.3, 2.0)),
        lambda a, threshold, value: np.where(a > threshold, a, value),
    ),
    _record("softshrink", _activation_samples((0.4,)), _softshrink),
    _record("hardshrink", _activation_samples((0.4,)), _hardshrink),
    _record("hardshrink_backward", _gradient_samples((0.4,)), _slope_of(_softshrink)),
]
