"""The names of mixed precision bound to one device type: ``tp.<type>.amp``."""

from __future__ import annotations

import functools
from typing import Any

from tensorplug.core.device.dtypes import DType

from . import autocast_mode, grad_scaler


def names_for(device_type: str) -> dict[str, Any]:
    """Return autocast, GradScaler, custom_fwd and custom_bwd as ``torch.<type>.amp`` has them.

    They are those of :mod:`tensorplug.amp`, but for the device type, which they do not take.
    """

    class autocast(autocast_mode.autocast):
        __doc__ = autocast_mode.autocast.__doc__

        def __init__(
            self, enabled: bool = True, dtype: DType | None = None, cache_enabled: bool = True
        ) -> None:
            super().__init__(device_type, dtype, enabled, cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        __doc__ = grad_scaler.GradScaler.__doc__

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            super().__init__(
                device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled
            )

    return {
        "autocast": autocast,
        "GradScaler": GradScaler,
        "custom_fwd": functools.partial(autocast_mode.custom_fwd, device_type=device_type),
        "custom_bwd": functools.partial(autocast_mode.custom_bwd, device_type=device_type),
    }
