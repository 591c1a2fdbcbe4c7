"""Records of short-time Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.dtypes import DType, complex64, complex128, float32, float64, int64

from ..records import ErrorSample, OpRecord, Sample

SUMS = {"float32": 2e-4, "complex64": 2e-4}
_PADS = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}


def _samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(12), 4, return_complex=True)
    yield Sample(make(2, 10), 4, 3, return_complex=True)
    yield Sample(make(10), 4, window=make(4, low=1), return_complex=True)
    yield Sample(make(10), 5, win_length=3, normalized=True, return_complex=True)
    yield Sample(make(10), 4, center=False, return_complex=True)
    for mode in ("constant", "replicate", "circular"):
        yield Sample(make(8), 4, 4, pad_mode=mode, return_complex=True)
    yield Sample(make(8), 4, return_complex=False)
    yield Sample(make(8), 4, onesided=False, return_complex=True)
    yield Sample(make(0, 8), 4, return_complex=True)


def _window(window: Any, size: int, n_fft: int) -> Any:
    full = np.zeros(n_fft, np.float64 if window is None else window.dtype)
    left = (n_fft - size) // 2
    full[left : left + size] = 1 if window is None else window
    return full


def _stft(
    a: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
) -> Any:
    hop, size = hop_length or n_fft // 4, win_length or n_fft
    x = a if a.ndim == 2 else a[None]
    if center:
        mode: Any = _PADS[pad_mode]
        x = np.pad(x, ((0, 0), (n_fft // 2, n_fft // 2)), mode=mode)
    full = _window(window, size, n_fft)
    starts = range(0, x.shape[1] - n_fft + 1, hop)
    frames = np.stack([x[:, start : start + n_fft] * full for start in starts], -1)
    norm: Any = "ortho" if normalized else None
    half = frames.dtype.kind != "c" if onesided is None else onesided
    result = (np.fft.rfft if half else np.fft.fft)(frames, axis=1, norm=norm)
    result = result if a.ndim == 2 else result[0]
    return result if return_complex else np.stack([result.real, result.imag], -1)


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(10), 4), RuntimeError, "return_complex")
    yield ErrorSample(Sample(make(10), 100, return_complex=True), RuntimeError, "adding size")
    yield ErrorSample(Sample(make(10), 4, 0, return_complex=True), RuntimeError, "hop_length > 0")
    yield ErrorSample(
        Sample(make(10), 4, win_length=5, return_complex=True), RuntimeError, "win_length"
    )
    yield ErrorSample(
        Sample(make(10), 4, window=make(3), return_complex=True), RuntimeError, "window"
    )
    yield ErrorSample(
        Sample(make(10, dtype=int64), 4, return_complex=True), RuntimeError, "floating point"
    )


def _inverse_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 5), 4)
    yield Sample(make(2, 3, 4), 4, 2)
    yield Sample(make(3, 4), 4, length=5)
    yield Sample(make(3, 4), 4, 2, length=9)
    yield Sample(make(3, 4), 4, 2, normalized=True, center=False)
    yield Sample(make(4, 4), 4, 2, return_complex=True)


def _istft(
    X: Any,
    n_fft: int,
    hop_length: int | None = None,
    center: bool = True,
    normalized: bool = False,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """Add the frames up one by one."""
    hop = hop_length or n_fft // 4
    columns = X if X.ndim == 3 else X[None]
    norm: Any = "ortho" if normalized else None
    frames: Any
    if return_complex:
        frames = np.fft.ifft(columns, axis=1, norm=norm)
    else:
        frames = np.fft.irfft(columns, n_fft, axis=1, norm=norm)
    total = n_fft + hop * (columns.shape[2] - 1)
    signal = np.zeros((len(columns), total), frames.dtype)
    weight = np.zeros(total)
    for t in range(columns.shape[2]):
        signal[:, t * hop : t * hop + n_fft] += frames[:, :, t]
        weight[t * hop : t * hop + n_fft] += 1
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    result = (signal / weight)[:, start : min(end, total)]
    result = np.pad(result, ((0, 0), (0, max(end - total, 0))))
    return result if X.ndim == 3 else result[0]


def _inverse_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 4, dtype=float64), 4), RuntimeError, "complex-valued")
    yield ErrorSample(Sample(make(5, 4, dtype=complex128), 4), RuntimeError, "frequency dimension")
    yield ErrorSample(Sample(make(3, 4, dtype=complex128), 4, 6), RuntimeError, "overlap add")
    yield ErrorSample(Sample(make(0, 3, 4, dtype=complex128), 4), RuntimeError, "nonempty")


RECORDS = [
    OpRecord("stft", _samples, _stft, (float32, float64), errors=_errors, atol=SUMS),
    OpRecord(
        "istft",
        _inverse_samples,
        _istft,
        (complex64, complex128),
        errors=_inverse_errors,
        atol=SUMS,
        never_empty="an empty input is refused, and a length is positive",
    ),
]
