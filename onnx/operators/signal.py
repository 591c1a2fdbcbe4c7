"""Fourier transforms, windows and mel filters. Complex numbers are pairs in the last dimension."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor, ops
from tensorplug.core.ops.fft import fourier
from tensorplug.core.tensor.creation import tensor

from ..registry import operator
from ..values import dtype_of

__all__: list[str] = []


def _window(name: str, parts: tuple[float, ...]) -> None:
    def window(size: Any, *, output_datatype: int = 1, periodic: int = 1, device: Any) -> Tensor:
        count = _number(size)
        step = 2 * math.pi / max(count if periodic else count - 1, 1)
        angle = ops.arange(count, dtype=dtype_of(11), device=device) * step
        total = ops.zeros_like(angle)
        for i, part in enumerate(parts):
            total = total + part * (-1) ** i * ops.cos(angle * i)
        return total.to(dtype_of(output_datatype))

    operator(name, host=("size",), placed=True)(window)


_window("HannWindow", (0.5, 0.5))
_window("HammingWindow", (25 / 46, 21 / 46))
_window("BlackmanWindow", (0.42, 0.5, 0.08))


@operator("DFT", host=("dft_length",))
def dft_by_attribute(
    input: Tensor, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(input, dft_length, axis, inverse, onesided)


@operator("DFT", since=20, host=("dft_length", "axis"))
def dft(
    input: Tensor, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(input, dft_length, -2 if axis is None else _number(axis), inverse, onesided)


def _dft(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    axis = axis % x.dim()
    values = x[..., 0] if x.shape[-1] == 1 else ops.complex(x[..., 0], x[..., 1])
    n = None if length is None else _number(length)
    if inverse and onesided:
        return fourier.fft_irfft(values, n, axis)[..., None]
    if inverse:
        result = fourier.fft_ifft(values, n, axis)
    elif onesided and x.shape[-1] == 1:
        result = fourier.fft_rfft(values, n, axis)
    else:
        result = fourier.fft_fft(values, n, axis)
    return ops.view_as_real(result)


@operator("STFT", host=("frame_step", "frame_length"))
def stft(
    signal: Tensor,
    frame_step: Any,
    window: Tensor | None = None,
    frame_length: Any = None,
    *,
    onesided: int = 1,
) -> Tensor:
    rows = signal[..., 0] if signal.dim() == 3 and signal.shape[-1] == 1 else signal
    if rows.dim() == 3:
        rows = ops.complex(rows[..., 0], rows[..., 1])
    if frame_length is not None:
        length = _number(frame_length)
    else:
        length = rows.shape[-1] if window is None else window.shape[0]
    frames = rows.unfold(-1, length, _number(frame_step))
    if window is not None:
        frames = frames * window
    real = onesided and not frames.dtype.is_complex
    return ops.view_as_real((fourier.fft_rfft if real else fourier.fft_fft)(frames, None, -1))


@operator(
    "MelWeightMatrix",
    host=("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"),
    placed=True,
)
def mel_weight_matrix(
    num_mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_edge_hertz: Any,
    upper_edge_hertz: Any,
    *,
    output_datatype: int = 1,
    device: Any,
) -> Tensor:
    bins, length, rate = _number(num_mel_bins), _number(dft_length), _number(sample_rate)
    low, high = (
        2595 * math.log10(1 + _number(edge) / 700) for edge in (lower_edge_hertz, upper_edge_hertz)
    )
    step = (high - low) / (bins + 2)
    hertz = [700 * (10 ** ((low + i * step) / 2595) - 1) for i in range(bins + 2)]
    edges = [int((length + 1) * f // rate) for f in hertz]
    rows = [[0.0] * bins for _ in range(length // 2 + 1)]
    for i in range(bins):
        left, middle, right = edges[i : i + 3]
        if left == middle:
            rows[middle][i] = 1.0
        for j in range(left, middle + 1 if left != middle else left):
            rows[j][i] = (j - left) / (middle - left)
        for j in range(middle, right):
            rows[j][i] = (right - j) / (right - middle)
    return tensor(rows, dtype=dtype_of(output_datatype), device=device)


def _number(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value
