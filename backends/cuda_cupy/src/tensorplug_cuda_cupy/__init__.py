"""CUDA devices for tensorplug, by CuPy, cuBLAS, cuDNN and kernels of its own."""

from __future__ import annotations

from ._plugin import amp, networks, optimizers, plugin

__all__ = ["amp", "networks", "optimizers", "plugin"]
