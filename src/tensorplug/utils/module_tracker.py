"""Which modules are running, forward or backward, as ``torch.utils.module_tracker``."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from operator import setitem
from typing import Any

from tensorplug.autograd.engine.backward_callbacks import queue_callback, running
from tensorplug.autograd.graph import register_multi_grad_hook
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor
from tensorplug.core.contexts import OwnContext, Steps
from tensorplug.nn.hooks import global_hooks
from tensorplug.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker(OwnContext):
    """Knows, within a ``with`` block, which modules are running.

    Attributes
    ----------
    parents : set of str
        The paths of those modules, and always ``"Global"``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Shows(tp.nn.Linear):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return super().forward(x)
    >>> model = tp.nn.Sequential(Shows(2, 1))
    >>> with ModuleTracker() as tracker:
    ...     y = model(tp.ones(2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether this thread is in a backward pass."""
        return running.current is not None

    def _name(self, module: Any) -> str:
        name: str = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            self._seen.add(module)
            for child, submodule in module.named_children():
                self._names[submodule] = f"{name}.{child}"
                self._name(submodule)
        return name

    def _in_backward(self, values: Any, function: Callable[[str], None], name: str) -> None:
        tensors = [
            value for value in tree_leaves(values) if isinstance(value, Tensor) and value.requires_grad
        ]  # fmt: skip
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, lambda _: function(name)))

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._in_backward(inputs, self.parents.discard, name)

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._in_backward(output, self._enter_backward, name)

    def _enter_backward(self, name: str) -> None:
        queue_callback(self._leave_backward)
        self.parents.add(name)

    def _leave_backward(self) -> None:
        self.parents.clear()
        self.parents.add("Global")

    def _steps(self) -> tuple[Steps, Steps]:
        places: list[tuple[Any, Any]] = [
            (global_hooks.forward_pre, self._before),
            (global_hooks.forward, self._after),
        ]
        handles = [(hooks, RemovableHandle(hooks).id, hook) for hooks, hook in places]
        return (
            [partial(setitem, hooks, key, hook) for hooks, key, hook in handles],
            [*[partial(hooks.pop, key, None) for hooks, key, _ in handles], self._forget],
        )

    def _forget(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
