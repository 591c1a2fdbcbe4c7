"""Automatic differentiation: the gradient layer, the engine, and the derivatives of core's ops."""

from __future__ import annotations

from tensorplug.core import plugins
from tensorplug.core.plugins import hookimpl

from . import layer
from .derivatives import Derivative, derivative, not_differentiable
from .engine import backward, grad
from .formulas import ALL
from .graph import Node
from .modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Derivative",
    "Node",
    "backward",
    "derivative",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "not_differentiable",
    "set_grad_enabled",
]


class _AutogradPlugin:
    """Registers the derivatives of core's ops as any plugin registers its own."""

    name = "autograd"

    @hookimpl
    def tensorplug_derivatives(self) -> list[object]:
        """Return the derivatives."""
        return list(ALL)


if plugins.record_of("autograd") is None:
    plugins.register(_AutogradPlugin())
