"""Handles of hooks, under torch's names."""

from __future__ import annotations

import warnings
from typing import Any

from tensorplug.autograd.graph.handles import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that is not kept where its tensor is pickled, so that nothing warns of it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the backward hooks of a tensor that is about to be pickled, which does not keep them."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can "
                "decorate the function with @tensorplug.utils.hooks.unserializable_hook to suppress "
                "this warning",
                stacklevel=2,
            )
