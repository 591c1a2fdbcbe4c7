"""The public names of ``tp.fft``."""

from __future__ import annotations

from .fourier import (
    fft_fft as fft,
)
from .fourier import (
    fft_fft2 as fft2,
)
from .fourier import (
    fft_fftfreq as fftfreq,
)
from .fourier import (
    fft_fftn as fftn,
)
from .fourier import (
    fft_fftshift as fftshift,
)
from .fourier import (
    fft_hfft as hfft,
)
from .fourier import (
    fft_hfft2 as hfft2,
)
from .fourier import (
    fft_hfftn as hfftn,
)
from .fourier import (
    fft_ifft as ifft,
)
from .fourier import (
    fft_ifft2 as ifft2,
)
from .fourier import (
    fft_ifftn as ifftn,
)
from .fourier import (
    fft_ifftshift as ifftshift,
)
from .fourier import (
    fft_ihfft as ihfft,
)
from .fourier import (
    fft_ihfft2 as ihfft2,
)
from .fourier import (
    fft_ihfftn as ihfftn,
)
from .fourier import (
    fft_irfft as irfft,
)
from .fourier import (
    fft_irfft2 as irfft2,
)
from .fourier import (
    fft_irfftn as irfftn,
)
from .fourier import (
    fft_rfft as rfft,
)
from .fourier import (
    fft_rfft2 as rfft2,
)
from .fourier import (
    fft_rfftfreq as rfftfreq,
)
from .fourier import (
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
