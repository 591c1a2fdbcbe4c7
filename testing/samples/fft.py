"""Records of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.fft

from tensorplug.core.device.dtypes import (
    DType,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int64,
)

from ..records import ErrorSample, OpRecord, Sample

COMPLEX = (complex64, complex128)
WIDE = (bool_, int64, float32, float64, *COMPLEX)
REAL = (bool_, int64, float32, float64)

# A sum of terms up to 9 cancels: its error is one of the terms.
SUMS = {"float32": 2e-4, "complex64": 2e-4, "int64": 2e-4, "bool": 1e-5}
_NORMS = ("backward", "ortho", "forward")


def _primitive(make: Any, dtype: DType) -> Iterator[Sample]:
    for number in range(3):
        yield Sample(make(3, 4), (1,), number, True)
    yield Sample(make(3, 4), (0, 1), 2, False)
    yield Sample(make(0, 4), (1,), 0, True)


def _c2c(a: Any, dim: Any, normalization: int, forward: bool) -> Any:
    if not a.size:
        return a
    if forward:
        return scipy.fft.fftn(a, axes=dim, norm=_NORMS[normalization])
    return scipy.fft.ifftn(a, axes=dim, norm=_NORMS[2 - normalization])


def _half_primitive(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4), (1,), 0)
    yield Sample(make(3, 5), (0, 1), 1)
    yield Sample(make(0, 4), (1,), 0)


def _back_primitive(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 3), (1,), 2, 4)
    yield Sample(make(3, 3), (0, 1), 1, 5)
    yield Sample(make(0, 3), (1,), 0, 4)


def _one_dim(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4))
    yield Sample(make(5))
    yield Sample(make(2, 3), dim=0)
    yield Sample(make(2, 4), n=3)
    yield Sample(make(2, 4), n=6)
    yield Sample(make(3, 4), norm="ortho")
    yield Sample(make(4), norm="forward")
    yield Sample(make(2, 3, 2), 4, -2)
    yield Sample(make(0, 4))


def _two_dims(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(3, 4))
    yield Sample(make(2, 3, 3), s=(2, 4))
    yield Sample(make(3, 2, 3), dim=(0, 2), norm="ortho")
    yield Sample(make(2, 3), norm="forward")
    yield Sample(make(0, 2, 3), dim=(1, 2))


def _many_dims(make: Any, dtype: DType) -> Iterator[Sample]:
    yield from _two_dims(make, dtype)
    yield Sample(make(4), s=(3,))
    yield Sample(make(2, 3, 2), dim=(0,))


def _errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3), norm="x"), RuntimeError, "normalization mode")
    yield ErrorSample(Sample(make(3), n=0), RuntimeError, "data points")
    yield ErrorSample(Sample(make(3), dim=1), IndexError, "out of range")
    yield ErrorSample(Sample(make()), IndexError, "no dimensions")
    yield ErrorSample(Sample(make(3, dtype=float16)), RuntimeError, "Unsupported dtype")


def _many_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, 3), s=(3,), dim=(0, 1)), RuntimeError, "same length")
    yield ErrorSample(Sample(make(3, 3), dim=(0, 0)), RuntimeError, "unique")


def _real_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(3, dtype=complex128)), RuntimeError, "real.*input")


def _transform(name: str) -> Callable[..., Any]:
    function = getattr(scipy.fft, name)

    def reference(a: Any, *args: Any, **options: Any) -> Any:
        wide = a if a.dtype.kind in "fc" else a.astype(np.float64)
        if "dim" in options:
            options["axis" if name[-1] not in "2n" else "axes"] = options.pop("dim")
        return function(wide, *args, **options)

    return reference


def _record(name: str, samples: Any, errors: Any) -> OpRecord:
    real = name.startswith(("rfft", "ihfft"))
    return OpRecord(
        f"fft_{name}",
        samples,
        _transform(name),
        REAL if real else WIDE,
        errors=_real_errors if real else errors,
        atol=SUMS,
        torch=f"fft.{name}",
    )


# --- frequencies and shifts -------------------------------------------------------------------
def _frequencies(make: Any, dtype: DType) -> Iterator[Sample]:
    for n in (1, 4, 5):
        yield Sample(n, dtype=dtype, device=make.device)
    yield Sample(4, 0.5, dtype=dtype, device=make.device)


def _none_and_frequencies(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(0, dtype=dtype, device=make.device)
    yield from _frequencies(make, dtype)


def _frequency_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(4, dtype=int64), RuntimeError, "requires a floating point")


def _shifts(make: Any, dtype: DType) -> Iterator[Sample]:
    yield Sample(make(4))
    yield Sample(make(3, 4))
    yield Sample(make(3, 4), 0)
    yield Sample(make(2, 3, 5), (0, -1))
    yield Sample(make(0, 3))


def _shift_errors(make: Any) -> Iterator[ErrorSample]:
    yield ErrorSample(Sample(make(4), 1), IndexError, "out of range")


_STFT_SUMS = {"float32": 2e-4, "complex64": 2e-4}
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


def _stft_errors(make: Any) -> Iterator[ErrorSample]:
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
    OpRecord("fft_c2c", _primitive, _c2c, COMPLEX, atol=SUMS, torch=""),
    OpRecord(
        "fft_r2c",
        _half_primitive,
        lambda a, dim, scale: scipy.fft.rfftn(a, axes=dim, norm=_NORMS[scale]),
        (float32, float64),
        atol=SUMS,
        torch="",
    ),
    OpRecord(
        "fft_c2r",
        _back_primitive,
        lambda a, dim, scale, last: scipy.fft.irfftn(
            a, s=[*[a.shape[d] for d in dim[:-1]], last], axes=dim, norm=_NORMS[2 - scale]
        ),
        COMPLEX,
        atol=SUMS,
        torch="",
    ),
    *[
        _record(name, _one_dim, _errors)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ],
    *[
        _record(name, _two_dims, _many_errors)
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
    ],
    *[
        _record(name, _many_dims, _many_errors)
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
    ],
    *[
        OpRecord(
            f"fft_{name}",
            samples,
            lambda n, d=1.0, name=name, **options: (
                getattr(np.fft, name)(n, d) if n else np.zeros(0)
            ),
            (float32, float64),
            gradient=False,
            errors=_frequency_errors,
            torch=f"fft.{name}",
            never_empty=reason,
        )
        for name, samples, reason in (
            ("fftfreq", _none_and_frequencies, None),
            ("rfftfreq", _frequencies, "the frequency 0 is always there"),
        )
    ],
    *[
        OpRecord(
            f"fft_{name}",
            _shifts,
            lambda a, dim=None, name=name: getattr(np.fft, name)(a, dim),
            errors=_shift_errors,
            torch=f"fft.{name}",
        )
        for name in ("fftshift", "ifftshift")
    ],
    OpRecord("stft", _samples, _stft, (float32, float64), errors=_stft_errors, atol=_STFT_SUMS),
    OpRecord(
        "istft",
        _inverse_samples,
        _istft,
        (complex64, complex128),
        errors=_inverse_errors,
        atol=_STFT_SUMS,
        never_empty="an empty input is refused, and a length is positive",
    ),
]
