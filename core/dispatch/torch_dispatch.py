"""What takes calls of ops over below ``__torch_function__``: modes and classes with ``__torch_dispatch__``.

They get ops as torch has them, ``tp.ops.aten.mm.default``, with plain arguments: how an op of ours is spelled
there is found by :data:`spelling`, which the facade sets. A mode is a layer, so that it sees backward too. A
class is asked below all layers, where an argument is of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..contexts import thread
from . import overrides
from .interception import Intercepted
from .layers import Layer, with_layer
from .op import Delegated, Op


class Spelling(Protocol):
    """How ops are spelled as torch's."""

    def composed(self, op: Op, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        """Return what makes the call of smaller ops, where torch has none but those."""

    def spelled(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return torch's op and its arguments."""
        raise NotImplementedError

    def named(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the same for a method that is no op."""


def _unset() -> Spelling:
    raise NotImplementedError("ops have other spellings where the package tensorplug is imported")


spelling: Callable[[], Spelling] = _unset


def decomposed(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call of a composite by its decomposition, with plain arguments."""
    values = op.arguments(args, kwargs)
    return values.result if type(values) is Delegated else op.decompose(values)


def dispatchers(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[Any]:
    """Return those arguments whose classes have ``__torch_dispatch__``, one of each class."""
    if not overrides.classes_dispatch:
        return []
    values = (*args, *kwargs.values()) if kwargs else args
    return overrides.overriding(values, overrides.dispatches)


def hand_over(found: list[Any], op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have the classes of some arguments make a call.

    Raises
    ------
    TypeError
        If all return NotImplemented.
    """
    composed = spelling().composed(op, args)
    if composed is not None:
        try:
            return composed(*args, **kwargs)
        except Intercepted:
            pass  # its rule looks at memory
    return ask(found, *spelling().spelled(op, args, kwargs))


def ask(found: list[Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have the classes of some tensors make a call of one of torch's ops."""
    types = tuple([type(value) for value in found])
    for kind in types:
        result = kind.__torch_dispatch__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join(f"  - tensor subclass {kind}" for kind in types)
    )


def compute(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call with a tensor that has no memory, for its runtime."""
    return hand_over(dispatchers(args, kwargs), op, args, kwargs)


class ModeLayer(Layer):
    """Hands the calls of a thread to a mode's ``__torch_dispatch__``."""

    # Below all that changes what is called, so that a mode sees what is computed.
    name, order, nested = "torch_dispatch", 50, True

    def __init__(self, mode: Any) -> None:
        self.mode = mode

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        """Hand a call over, or its parts where torch has no such op."""
        composed = spelling().composed(op, args)
        if composed is not None:
            below = thread.stack
            thread.stack = with_layer(below, self)
            try:
                return composed(*args, **kwargs)
            except Intercepted:
                pass
            finally:
                thread.stack = below
        func, args, kwargs = spelling().spelled(op, args, kwargs)
        types = tuple([type(value) for value in dispatchers(args, kwargs)])
        result = self.mode.__torch_dispatch__(func, types, args, kwargs)
        if result is NotImplemented:
            raise TypeError(
                f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned "
                f"NotImplemented:\n\n  - mode object {self.mode}"
            )
        return result
