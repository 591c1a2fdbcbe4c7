"""The version of tensorplug."""

from __future__ import annotations

from importlib import metadata

__all__ = ["__version__"]

__version__ = metadata.version("tensorplug")
debug = False
