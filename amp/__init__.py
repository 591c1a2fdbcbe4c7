"""Mixed precision: autocast, and the scaling of losses."""

from __future__ import annotations

from . import plugin as _plugin  # isort: skip  # first: it registers layer, policies and ops
from .autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
