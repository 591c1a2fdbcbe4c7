"""The public names of ``tp.fft``."""

from __future__ import annotations

from .fourier import (
    fft_fft as fft,
    fft_fftfreq as fftfreq,
    fft_fftshift as fftshift,
    fft_hfft as hfft,
    fft_ifft as ifft,
    fft_ifftshift as ifftshift,
    fft_ihfft as ihfft,
    fft_irfft as irfft,
    fft_rfft as rfft,
    fft_rfftfreq as rfftfreq,
)
from .fourier_dimensions import (
    fft_fft2 as fft2,
    fft_fftn as fftn,
    fft_hfft2 as hfft2,
    fft_hfftn as hfftn,
    fft_ifft2 as ifft2,
    fft_ifftn as ifftn,
    fft_ihfft2 as ihfft2,
    fft_ihfftn as ihfftn,
    fft_irfft2 as irfft2,
    fft_irfftn as irfftn,
    fft_rfft2 as rfft2,
    fft_rfftn as rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
