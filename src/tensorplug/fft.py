"""Discrete Fourier transforms, under the names of ``torch.fft``."""

from __future__ import annotations

from tensorplug.core.ops.fft.namespace import *
