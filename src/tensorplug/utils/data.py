"""Datasets, samplers and loaders: :mod:`tensorplug.data` under torch's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.data import *

if not TYPE_CHECKING:  # a checker takes a module with this to have every name

    def __getattr__(name: str) -> Any:
        """Say why a name is missing."""
        why = ": torch gave data pipes up as well; use a Dataset or IterableDataset" * (
            "pipe" in name.lower()
        )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
