"""What every part of :class:`~tensorplug.nn.Module` can rely on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor

from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

Hook: TypeAlias = Callable[..., Any]
Hooks: TypeAlias = "OrderedDict[int, Hook]"

#: The attributes of a module that hold hooks, each a dictionary by the handle's id.
HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class ModuleBase:
    """The state of a module; its behaviour is in the classes that derive from this one."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks

    def _get_name(self) -> str:
        """Return the name that messages and ``repr`` use."""
        return type(self).__name__


def add_hook(hooks: Hooks, hook: Hook, *, prepend: bool = False) -> RemovableHandle:
    """Put a hook last, or first with `prepend`; return the handle that takes it away."""
    handle = RemovableHandle.register(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
