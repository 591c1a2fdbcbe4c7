"""The standard's extension ``fft``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import DType
from tensorplug.core.ops.fft import namespace as transforms

from .array import Array, wrap
from .data_types import Placement

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _one(op: Callable[..., Any], name: str, what: str) -> Callable[..., Array]:
    """Return the standard's form of a transform along one axis."""

    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return wrap(op(x, n, axis, norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Return {what} along an axis of `n` points."
    return transform


def _many(op: Callable[..., Any], name: str, what: str) -> Callable[..., Array]:
    """Return the standard's form of a transform along several axes."""

    def transform(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Array:
        return wrap(op(x, s, axes, norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Return {what} along axes of `s` points."
    return transform


fft = _one(transforms.fft, "fft", "the discrete Fourier transform")
ifft = _one(transforms.ifft, "ifft", "the inverse of fft")
rfft = _one(transforms.rfft, "rfft", "half of the Fourier transform of real numbers")
irfft = _one(transforms.irfft, "irfft", "the inverse of rfft")
hfft = _one(transforms.hfft, "hfft", "the Fourier transform, real, of half a Hermitian signal")
ihfft = _one(transforms.ihfft, "ihfft", "the inverse of hfft")
fftn = _many(transforms.fftn, "fftn", "the discrete Fourier transform")
ifftn = _many(transforms.ifftn, "ifftn", "the inverse of fftn")
rfftn = _many(transforms.rfftn, "rfftn", "half of the Fourier transform of real numbers")
irfftn = _many(transforms.irfftn, "irfftn", "the inverse of rfftn")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Placement = None
) -> Array:
    """Return the frequencies of fft for `n` points at distances of `d`."""
    return wrap(transforms.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Placement = None
) -> Array:
    """Return the frequencies of rfft for `n` points at distances of `d`."""
    return wrap(transforms.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return `x` with the frequency 0 moved to the middle."""
    return wrap(transforms.fftshift(x, axes))


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return `x` with the frequency 0 moved back to the front."""
    return wrap(transforms.ifftshift(x, axes))
