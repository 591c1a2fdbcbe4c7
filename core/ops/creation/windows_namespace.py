"""The public names of ``tp.signal.windows``."""

from __future__ import annotations

from .windows_signal import (
    windows_bartlett as bartlett,
    windows_blackman as blackman,
    windows_cosine as cosine,
    windows_exponential as exponential,
    windows_gaussian as gaussian,
    windows_general_cosine as general_cosine,
    windows_general_hamming as general_hamming,
    windows_hamming as hamming,
    windows_hann as hann,
    windows_kaiser as kaiser,
    windows_nuttall as nuttall,
)

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]
