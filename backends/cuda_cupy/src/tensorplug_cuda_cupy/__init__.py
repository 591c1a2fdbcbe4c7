"""CUDA devices for tensorplug, by CuPy, cuBLAS, cuDNN and kernels of its own."""

from __future__ import annotations

from ._plugin import plugin

__all__ = ["plugin"]
