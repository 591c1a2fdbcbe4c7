"""Records of linear layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import DType, int32

from ..records import Sample
from ._networks import gelu, layer_record
from .indexing.indexing import positions
from .reductions import INEXACT


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
    "gelu": lambda a: gelu(a, "none"),
    "gelu_tanh": lambda a: gelu(a, "tanh"),
    "silu": lambda a: a / (1 + np.exp(-a)),
}


def _linear_activation(a: Any, w: Any, b: Any, activation: str) -> Any:
    return _ACTIVATIONS[activation](_linear(a, w, b))


def _bilinear_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for lead, bias in (((5,), True), ((2, 5), False), ((0,), False)):
        shapes = ((*lead, 3), (*lead, 2), (4, 3, 2), (4,))
        values = [make(*shape, low=-1.0, high=1.0) for shape in shapes]
        yield Sample(*values[: 3 + bias])


def _bilinear(a: Any, b: Any, w: Any, bias: Any = 0) -> Any:
    return np.einsum("...i,kij,...j->...k", a, w, b) + bias


def _grouped_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for one, other, ends in (
        ((7, 3), (3, 3, 2), [2, 2, 7]),  # the second group has no rows
        ((7, 3), (2, 3, 2), [2, 5]),  # no group has the last rows
        ((3, 2, 3), (3, 7), [1, 4, 7]),
        ((2, 7), (7, 3), [2, 7]),
        ((0, 3), (2, 3, 2), [0, 0]),
    ):
        yield Sample(make(*one), make(*other), offs=positions(make, ends, int32))
    yield Sample(make(2, 3, 4), make(2, 4, 3))


def _grouped(a: Any, b: Any, offs: Any = None) -> Any:
    if offs is None:
        return a @ b
    parts = [*map(slice, [0, *offs[:-1]], offs)]
    if a.ndim == b.ndim:
        return np.stack([a[:, part] @ b[part] for part in parts])
    result = np.zeros((a.shape[-2], b.shape[-1]), np.result_type(a, b))
    for number, part in enumerate(parts):
        if a.ndim == 2:
            result[part] = a[part] @ b[number]
        else:
            result[:, part] = a[number] @ b[:, part]
    return result


RECORDS = [
    layer_record("grouped_mm", _grouped_samples, _grouped),
    layer_record("bilinear", _bilinear_samples, _bilinear, torch="nn.functional.bilinear"),
    layer_record("linear", _linear_samples, _linear, dtypes=INEXACT),
    layer_record("linear_activation", _linear_activation_samples, _linear_activation),
]
