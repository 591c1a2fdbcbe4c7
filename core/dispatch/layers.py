"""Layers: what sees calls of ops.

A layer sees every call made while it is active in the calling thread, and passes it on with
``proceed``; :mod:`.dispatcher` takes the call through them. Autograd is reached by a shorter way; autocast,
tracing, profiling and functional transforms are layers, and so may a plugin's be.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, ContextDecorator
from functools import partial
from typing import Any

from ..contexts import Context, thread
from .counts import count_grad_disabled, count_layers
from .op import Op
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

    def graph_key(self) -> Hashable:
        """Return what calls under this layer have in common that one captured graph may serve.

        The graph then holds what the layer makes of a call. None, as here, if no graph can: such calls
        stay eager.
        """
        return None

    def stand_in(self) -> Layer | None:
        """Return what is to see a second run of calls, recorded as they are now; None if no layer."""
        return None

    def on_read(self, tensor: Any, how: str) -> None:
        """Note that data of a tensor decides what follows: it goes to the host, or into a shape."""

    def on_opaque(self, what: str) -> None:
        """Note that something computes which layers see only the parts of."""

    def on_grad(self, tensor: Any) -> None:
        """Note that the gradient which a tensor has accumulated is read."""
        self.on_opaque("reading grad")

    def on_requires_grad(self, tensor: Any) -> None:
        """Note that a tensor is told whether it requires grad."""
        self.on_opaque("requires_grad_()")

    def on_hidden(self, what: str) -> None:
        """Note that a call does what it does not do with meta tensors, or does once more: a check, a draw."""

    def on_changed(self) -> None:
        """Note that a layer above this one changes the arguments of a call that follows."""

    def on_setting(self, read: Callable[[], Any]) -> None:
        """Note that a setting of the process or thread is read, as `read` returns it."""

    def on_layout(self) -> None:
        """Note that a call asks how a meta tensor would lie in memory."""

    def on_point(self, tensor: Any, source: Any) -> None:
        """Note that a transform differentiates at a tensor, which stands for another one without gradient."""
        self.on_opaque("a gradient within")

    def on_data(self, tensor: Any, array: Any, place: Callable[[Any], Any]) -> None:
        """Note that a tensor is made of an array of the host; `place` makes it on another device."""

    def active(self) -> AbstractContextManager[Layer]:
        """Intercept this thread's calls within a ``with`` block."""
        return _Active(self)


class _Active(Context):
    """Has a layer intercept the calls of this thread."""

    __slots__ = ("layer",)

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def _changes(self) -> dict[str, Any]:
        return count_layers() | {"stack": with_layer(thread.stack, self.layer)}

    def __enter__(self) -> Layer:
        super().__enter__()
        return self.layer


def with_layer(stack: tuple[Layer, ...], layer: Layer) -> tuple[Layer, ...]:
    """Return active layers with one more; one of equal order, or itself, is below it."""
    return tuple(sorted((*stack, layer), key=lambda layer: layer.order))


def active_layers() -> tuple[Layer, ...]:
    """Return this thread's active layers, the outermost last."""
    return thread.stack


def note_read(tensor: Any, how: str) -> None:
    """Tell this thread's layers that data of a tensor is read."""
    for layer in thread.stack:
        layer.on_read(tensor, how)


def note_opaque(what: str) -> None:
    """Tell this thread's layers that something computes which they see only the parts of."""
    for layer in thread.stack:
        layer.on_opaque(what)


def note_grad(tensor: Any) -> None:
    """Tell this thread's layers that the gradient which a tensor has accumulated is read."""
    for layer in thread.stack:
        layer.on_grad(tensor)


def note_requires_grad(tensor: Any) -> None:
    """Tell this thread's layers that a tensor is told whether it requires grad."""
    for layer in thread.stack:
        layer.on_requires_grad(tensor)


def note_hidden(what: str) -> None:
    """Tell this thread's layers that a call does what it does not do with meta tensors, or does once more."""
    for layer in thread.stack:
        layer.on_hidden(what)


def note_changed() -> None:
    """Tell the layers below the one that sees a call that its arguments are changed."""
    for layer in thread.stack:
        layer.on_changed()


def note_setting(read: Callable[..., Any], *args: Any) -> None:
    """Tell this thread's layers that a setting is read, which ``read(*args)`` returns."""
    for layer in thread.stack:
        layer.on_setting(partial(read, *args))


def note_layout() -> None:
    """Tell this thread's layers that a call asks how a meta tensor would lie in memory."""
    for layer in thread.stack:
        layer.on_layout()


def note_point(tensor: Any, source: Any) -> None:
    """Tell this thread's layers that a transform differentiates at a tensor that stands for another one."""
    for layer in thread.stack:
        layer.on_point(tensor, source)


def note_data(tensor: Any, array: Any, place: Callable[[Any], Any]) -> None:
    """Tell this thread's layers that a tensor is made of an array of the host."""
    for layer in thread.stack:
        layer.on_data(tensor, array, place)


class isolated(Context, ContextDecorator):
    """Leaves this thread's layers out within a ``with`` block."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"stack": ()}


class _GradientOff(Context):
    """Disables recording in this thread; ``no_grad`` and fused derivatives use it."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        count_grad_disabled()
        return {"enabled": False}


class _Passing(Layer):
    """Passes calls on: with it they take the ways of calls that a layer sees."""

    name = "passing"
    nested = True

    def stand_in(self) -> Layer:
        """Return itself."""
        return self


#: Stands in for a layer that is gone.
PASSING = _Passing()


class going_in(Context):
    """Has those of the layers that a call goes through see what its body calls that see a composite's."""

    __slots__ = ("entered",)

    def __init__(self, entered: tuple[Layer, ...]) -> None:
        self.entered = entered

    def _changes(self) -> dict[str, Any]:
        stack = tuple([layer for layer in self.entered if layer.nested])
        return count_layers() | {"stack": stack}


#: Says whether this thread records for differentiation, and whether it makes inference tensors.
recording = thread

gradient_off: Callable[[], AbstractContextManager[None]] = _GradientOff

dispatch_state.gradient_off = gradient_off
