"""Helpers under the names that torch gives them: ``tp.utils.data`` and the like."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        _mode_utils,
        _python_dispatch,
        _pytree,
        benchmark,
        checkpoint,
        collect_env,
        data,
        deterministic,
        dlpack,
        flop_counter,
        hooks,
        model_zoo,
        module_tracker,
        tensorboard,
    )
    from .model_summary import Summary, summary
    from .swapping import swap_tensors

__all__ = [
    "Summary",
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "summary",
    "swap_tensors",
    "tensorboard",
]


def __getattr__(name: str) -> Any:
    if name in ("Summary", "summary"):
        return getattr(importlib.import_module(f"{__name__}.model_summary"), name)
    if name == "swap_tensors":
        return importlib.import_module(f"{__name__}.swapping").swap_tensors
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
