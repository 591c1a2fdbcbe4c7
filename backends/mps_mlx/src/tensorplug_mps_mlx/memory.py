"""Figures and limits of memory, and the other names of ``tp.mps``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _mlx
from ._mlx import mx
from .events import Event


def stats() -> Mapping[str, int]:
    """Return MLX's figures in bytes."""
    active, cached = mx.get_active_memory(), mx.get_cache_memory()
    return {
        "allocated": active,
        "peak_allocated": mx.get_peak_memory(),
        "reserved": active + cached,
        "cached": cached,
        "limit": mx.get_memory_limit(),
    }


def current_allocated_memory() -> int:
    """Return the bytes that arrays take now."""
    return int(mx.get_active_memory())


def driver_allocated_memory() -> int:
    """Return the bytes that arrays take, and those that MLX keeps for coming ones."""
    return int(mx.get_active_memory() + mx.get_cache_memory())


def recommended_max_memory() -> int:
    """Return how many bytes a program should take at most."""
    facts = mx.device_info(_mlx.DEVICE)
    return int(facts.get("max_recommended_working_set_size", mx.get_memory_limit()))


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limit memory to a part of :func:`recommended_max_memory`."""
    if not 0 <= fraction <= 2:
        raise ValueError(
            f"set_per_process_memory_fraction(): expected a fraction from 0 to 2, got {fraction}"
        )
    mx.set_memory_limit(int(fraction * recommended_max_memory()))


NAMES: Mapping[str, Any] = {
    "Event": Event,
    "current_allocated_memory": current_allocated_memory,
    "driver_allocated_memory": driver_allocated_memory,
    "recommended_max_memory": recommended_max_memory,
    "set_per_process_memory_fraction": set_per_process_memory_fraction,
}
