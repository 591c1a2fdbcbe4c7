"""Records of differences and integrals along a dimension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import ALL_DTYPES, INTEGRAL, DType, bool_, float32

from ..records import ErrorSample, OpRecord, Sample
from .reductions import CANCELLATION, INEXACT

_NUMBERS = tuple(dtype for dtype in ALL_DTYPES if dtype is not bool_)

# float16 with bfloat16 aside, a coordinate's quotient is rounded at each step in half precision.
_STEPS = {**CANCELLATION, "float16": 5e-1, "bfloat16": 4.0, "float32": 1e-3, "complex64": 1e-3}


def _diff_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5))
    yield Sample(make(3, 4), 2)
    yield Sample(make(3, 4), 1, 0)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3), 5)
    yield Sample(make(3, 4), prepend=make(3, 1), append=make(3, 2))
    yield Sample(make(0))


def _diff(a: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [part for part in (prepend, a, append) if part is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


def _diff_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make()), RuntimeError, "at least one-dimensional")
    yield ErrorSample(Sample(make(3), -1), RuntimeError, "non-negative")
    yield ErrorSample(Sample(make(3), prepend=make()), RuntimeError, "same dimension")


def _gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(5))
    yield Sample(make(4, 3))
    yield Sample(make(4, 3), dim=1)
    yield Sample(make(4, 3), spacing=2.0, edge_order=2)
    yield Sample(make(4, 3), spacing=[2.0, 0.5], dim=(0, 1))
    # Coordinates of its own for each dimension, ascending.
    steps = make(4, dtype=float32 if dtype.itemsize < 8 else None, low=1, high=2).detach()
    if not dtype.is_complex:
        yield Sample(make(4), spacing=[steps.cumsum(0)], edge_order=2)
        yield Sample(make(2, 4), spacing=[steps.cumsum(0)], dim=1)
    yield Sample(make(0, 3), dim=1)


def _gradient(a: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    a = a.astype(np.float64) if a.dtype.kind in "iu" else a
    count = a.ndim if dim is None else len(np.atleast_1d(dim))
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * count
    found: Any = np.gradient(a, *spacings, axis=dim, edge_order=edge_order)  # type: ignore[call-overload]
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def _gradient_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(1)), RuntimeError, "at least edge_order")
    yield ErrorSample(Sample(make(3), edge_order=3), RuntimeError, "edge_order=1 and edge_order=2")
    yield ErrorSample(Sample(make(3, 3), spacing=[1.0, 2.0], dim=0), RuntimeError, "spacing")


def trapezoid_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    """Yield even steps, and coordinates that are shared or one for each row."""
    yield Sample(make(5))
    yield Sample(make(3, 4), dx=0.5)
    yield Sample(make(3, 4), dim=0)
    yield Sample(make(3, 4), make(4))
    yield Sample(make(3, 4), make(3), dim=0)
    yield Sample(make(3, 4), make(3, 4))
    yield Sample(make(2, 1))
    yield Sample(make(0))
    yield Sample(make(0, 3), make(3))
    yield Sample(make(2, 0), dx=0.5)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx, dim)


def _cumulative(y: Any, x: Any = None, dx: Any = 1, dim: int = -1) -> Any:
    y = np.moveaxis(y, dim, -1)
    if x is not None:
        dx = np.diff(x if x.ndim == 1 else np.moveaxis(x, dim, -1), axis=-1)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) * dx / 2, -1), -1, dim)


def _trapezoid_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make()), IndexError, "no dimensions")
    yield ErrorSample(Sample(make(2, dtype=bool_)), RuntimeError, "bool")
    yield ErrorSample(Sample(make(2), make(2), dx=1), TypeError, "either")
    yield ErrorSample(Sample(make(2), make(3)), RuntimeError, "one `x` value")


_SIGNED = tuple(d for d in _NUMBERS if d not in INTEGRAL or d.is_signed)


RECORDS = [
    OpRecord("diff", _diff_samples, _diff, errors=_diff_errors, atol=CANCELLATION),
    OpRecord(
        "gradient",
        _gradient_samples,
        _gradient,
        dtypes=INEXACT,
        errors=_gradient_errors,
        atol=_STEPS,
    ),
    OpRecord(
        "trapezoid",
        trapezoid_samples,
        _trapezoid,
        dtypes=_SIGNED,
        errors=_trapezoid_errors,
        atol=_STEPS,
    ),
    OpRecord(
        "cumulative_trapezoid",
        trapezoid_samples,
        _cumulative,
        dtypes=_SIGNED,
        errors=_trapezoid_errors,
        atol=_STEPS,
    ),
]
