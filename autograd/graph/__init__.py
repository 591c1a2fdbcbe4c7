"""The graph as users meet it (``torch.autograd.graph``); its parts are in the modules of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .edges import GradientEdge, get_gradient_edge
    from .hooks import (
        allow_mutation_on_saved_tensors,
        disable_saved_tensors_hooks,
        increment_version,
        register_multi_grad_hook,
        save_on_cpu,
    )
    from .nodes import Node
    from .saved_tensors import saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def __getattr__(name: str) -> Any:
    # The modules of this package and of `engine` need each other: none is imported by importing the package.
    if name in __all__:
        from . import hooks  # on first use: saves import time

        return getattr(hooks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
