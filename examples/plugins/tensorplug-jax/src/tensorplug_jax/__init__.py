"""The device "jax": JAX arrays, which never change, computed by XLA on whatever hardware JAX finds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as xp

from tensorplug.plugin import array_api_backend

__all__ = ["plugin"]

# Without it JAX has no float64 and no int64.
jax.config.update("jax_enable_x64", True)

plugin = array_api_backend(xp, device_type="jax")


@plugin.kernel()
def sigmoid(input: Any) -> Any:
    """Fused by XLA, where the adapter calls three functions."""
    return jax.nn.sigmoid(input)
