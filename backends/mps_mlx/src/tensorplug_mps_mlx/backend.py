"""The device: MLX through the adapter of array libraries, and its kernels."""

from __future__ import annotations

from tensorplug.plugin import ArrayApiBackend, array_api_backend

from . import _mlx
from ._mlx import mx
from .dtypes import DTYPES
from .kernels import families
from .runtime import MpsRuntime


def made(name: str) -> ArrayApiBackend:
    """Return the plugin."""
    plugin = array_api_backend(
        mx,
        device_type="mps",
        name=name,
        to_host=_mlx.to_numpy,
        from_host=_mlx.from_numpy,
        dtypes=DTYPES,
        runtime=MpsRuntime,
    )
    for family in families():
        family.build(plugin)
    return plugin
