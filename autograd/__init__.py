"""Automatic differentiation: the gradient layer, the engine, and the derivatives of core's ops."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tensorplug.core import plugins
from tensorplug.core.plugins import hookimpl

from . import anomaly_mode, grad_mode, graph
from .anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
    set_detect_anomaly,
)
from .engine.backward import backward, grad
from .engine.derivatives import Derivative, derivative, not_differentiable
from .formulas import FAMILIES
from .function import Function, once_differentiable
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .graph import recorder
from .graph.nodes import Node
from .variable import Variable

if TYPE_CHECKING:  # at run time these are imported when they are first used
    from . import forward_ad, functional, profiler
    from .graph.visualization import visualize

__all__ = [
    "Derivative",
    "Function",
    "GradcheckError",
    "Node",
    "Variable",
    "anomaly_mode",
    "backward",
    "derivative",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "not_differentiable",
    "once_differentiable",
    "profiler",
    "recorder",
    "set_anomaly_enabled",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "visualize",
]


def __getattr__(name: str) -> Any:
    if name in ("forward_ad", "functional", "profiler"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "visualize":
        from .graph.visualization import visualize  # on first use: saves import time

        return visualize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _AutogradPlugin:
    """Registers the derivatives, tangents and vmap rules of core's ops, as any plugin does."""

    name = "autograd"

    @hookimpl
    def tensorplug_derivatives(self) -> list[Any]:
        """Return the derivatives."""
        return [item for family in FAMILIES for item in getattr(family, "DERIVATIVES", ())]

    @hookimpl
    def tensorplug_tangents(self) -> list[Any]:
        """Return the forward rules."""
        return [item for family in FAMILIES for item in getattr(family, "TANGENTS", ())]

    @hookimpl
    def tensorplug_vmap_rules(self) -> list[Any]:
        """Return the rules of vmap."""
        return [item for family in FAMILIES for item in getattr(family, "VMAP_RULES", ())]


if plugins.record_of("autograd") is None:
    plugins.register(_AutogradPlugin())
