"""Helpers under the names that torch gives them: ``tp.utils.data`` and the like."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _pytree, checkpoint, data

__all__ = ["_pytree", "checkpoint", "data"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
