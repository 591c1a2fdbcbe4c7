"""Records of window functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.signal.windows as reference_windows

from tensorplug.core.device.dtypes import FLOATS, DType, float32, float64, int64

from ...records import ErrorSample, OpRecord, Sample

# Angles up to 2 pi are rounded before their cosine is taken; half precision rounds once more.
ANGLES = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}


def _samples(
    options: tuple[dict[str, Any], ...], periodic: bool
) -> Callable[..., Iterator[Sample]]:
    flag = "periodic" if periodic else "sym"

    def samples(make: Any, dtype: DType) -> Iterator[Sample]:
        place: dict[str, Any] = {"dtype": dtype, "device": make.device}
        for length in (0, 1, 2, 7):
            yield Sample(length, **options[0], **place)
            other_form: dict[str, Any] = {**place, flag: not periodic}
            yield Sample(length, **options[0], **other_form)
        for other in options[1:]:
            yield Sample(8, **other, **place)

    return samples


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1), RuntimeError, "non-negative")
    yield ErrorSample(Sample(3, dtype=int64), RuntimeError, "floating point")
    yield ErrorSample(Sample(2.5), TypeError, "must be int")


def _top(name: str, *options: dict[str, Any], reference: Any = None) -> OpRecord:
    own = reference or getattr(reference_windows, name)

    def expected(length: int, periodic: bool = True, **given: Any) -> Any:
        for key in ("dtype", "device"):
            given.pop(key)
        return own(length, sym=not periodic, **given)

    return OpRecord(
        f"{name}_window",
        _samples(options or ({},), True),
        expected,
        FLOATS,
        gradient=False,
        errors=_errors,
        rtol=ANGLES,
        atol=ANGLES,
    )


def _hamming(length: int, sym: bool, alpha: float = 0.54, beta: float = 0.46) -> Any:
    if length < 2:
        return np.ones(length)
    count = length if sym else length + 1
    return alpha - beta * np.cos(2 * np.pi * np.arange(length) / (count - 1))


def _signal_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(-1), ValueError, "non-negative")
    yield ErrorSample(Sample(3, dtype=int64), ValueError, "float32 or float64")


def _signal(
    name: str, *options: dict[str, Any], errors: Any = _signal_errors, reference: Any = None
) -> OpRecord:
    own = reference or getattr(reference_windows, name)

    def expected(M: int, sym: bool = True, **given: Any) -> Any:
        for key in ("dtype", "device"):
            given.pop(key)
        return own(M, sym=sym, **given)

    return OpRecord(
        f"windows_{name}",
        _samples(options or ({},), False),
        expected,
        (float32, float64),
        gradient=False,
        errors=errors,
        rtol=ANGLES,
        atol=ANGLES,
        torch=f"signal.windows.{name}",
    )


def _wrong(options: dict[str, Any], match: str) -> Callable[..., Iterator[ErrorSample]]:
    def errors(make: Any) -> Iterator[ErrorSample]:
        yield ErrorSample(Sample(5, **options), ValueError, match)

    return errors


RECORDS = [
    _top("hann"),
    _top("hamming", {}, {"alpha": 0.6, "beta": 0.4}, reference=_hamming),
    _top("blackman"),
    _top("bartlett"),
    _top("kaiser", {"beta": 12.0}, {"beta": 5.0}),
    _signal("bartlett"),
    _signal("blackman"),
    _signal("cosine"),
    _signal("exponential", {}, {"tau": 2.0}, errors=_wrong({"tau": 0.0}, "Tau")),
    _signal("gaussian", {"std": 1.0}, {"std": 2.0}, errors=_wrong({"std": 0.0}, "deviation")),
    _signal(
        "general_cosine", {"a": [0.4, 0.3, 0.2]}, {"a": [0.4]}, errors=_wrong({"a": []}, "empty")
    ),
    _signal("general_hamming", {"alpha": 0.54}, {"alpha": 0.3}),
    _signal("hamming"),
    _signal("hann"),
    _signal("kaiser", {"beta": 12.0}, errors=_wrong({"beta": -1.0}, "beta")),
    _signal("nuttall"),
]
