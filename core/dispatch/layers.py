"""Layers: what intercepts calls of ops.

A layer sees every call made while it is active in the calling thread, and passes it on with
``proceed``. Autograd is reached by a shorter way (:mod:`.dispatcher`); autocast, tracing, profiling and
functional transforms are layers, and so may a plugin's be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from . import dispatcher
from .op_registry import Op
from .state import dispatch_state


class Layer:
    """Base class of layers.

    Attributes
    ----------
    name : str
        A unique name.
    order : int
        Where the layer stands: a call passes active layers from the highest order to the lowest, then
        reaches autograd and the kernels. Autocast stands at 200 (it has to see composites before the
        transforms take them apart), functional transforms at 150, tracing and profiling at 100.
    nested : bool
        Whether the layer also sees the ops that a composite's body calls, as a profiler does.

    Examples
    --------
    >>> class Count(Layer):
    ...     name, order, nested = "count", 100, True
    ...     calls = 0
    ...
    ...     def __call__(self, op, args, kwargs, proceed):
    ...         self.calls += 1
    ...         return proceed(*args, **kwargs)
    """

    name: str = "layer"
    order: int = 100
    nested: bool = False

    def __call__(
        self,
        op: Op,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        """Handle one call; ``proceed(*args, **kwargs)`` passes it on."""
        return proceed(*args, **kwargs)

    @contextmanager
    def active(self) -> Generator[Layer]:
        """Intercept this thread's calls within a ``with`` block."""
        previous = _local.stack
        # A layer entered again, or of equal order, goes above what is there already.
        _local.stack = tuple(sorted((*previous, self), key=lambda layer: layer.order))
        dispatch_state.count_layers(1)
        try:
            yield self
        finally:
            dispatch_state.count_layers(-1)
            _local.stack = previous


class _Local(threading.local):
    """The active layers of a thread, lowest order first."""

    stack: tuple[Layer, ...] = ()


_local = _Local()


def active_layers() -> tuple[Layer, ...]:
    """Return this thread's active layers, the outermost last."""
    return _local.stack


def _through_layers(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    stack = _local.stack
    if not stack:
        return dispatcher.run(op, args, kwargs)
    return _enter(stack, len(stack) - 1, op, args, kwargs)


def _enter(
    stack: tuple[Layer, ...], position: int, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    layer = stack[position]
    # While a layer works, its own ops meet only the layers below it.
    below = stack[:position]

    def proceed(*args: Any, **kwargs: Any) -> Any:
        if position:
            return _enter(stack, position - 1, op, args, kwargs)
        inside = _local.stack
        _local.stack = tuple([entry for entry in stack if entry.nested])
        try:
            return dispatcher.run(op, args, kwargs)
        finally:
            _local.stack = inside

    previous = _local.stack
    _local.stack = below
    try:
        return layer(op, args, kwargs, proceed)
    finally:
        _local.stack = previous


@contextmanager
def isolated() -> Generator[None]:
    """Leave this thread's layers out within a ``with`` block."""
    previous = _local.stack
    _local.stack = ()
    try:
        yield
    finally:
        _local.stack = previous


class _GradientOff:
    """Disables recording in this thread; ``no_grad`` and fused derivatives use it."""

    __slots__ = ("previous",)

    def __enter__(self) -> None:
        self.previous = recording.enabled
        recording.enabled = False
        dispatch_state.count_grad_disabled(1)

    def __exit__(self, *exc: object) -> None:
        dispatch_state.count_grad_disabled(-1)
        recording.enabled = self.previous


class Recording(threading.local):
    """Whether this thread records for differentiation, and whether it makes inference tensors."""

    enabled: bool = True
    inference: bool = False

    def on(self) -> bool:
        """Return whether calls are recorded: in inference mode none is."""
        return self.enabled and not self.inference


recording = Recording()

gradient_off: Callable[[], AbstractContextManager[None]] = _GradientOff

dispatch_state.through_layers = _through_layers
dispatch_state.gradient_off = gradient_off
