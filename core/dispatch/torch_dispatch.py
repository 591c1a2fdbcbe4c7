"""What takes calls of ops over below ``__torch_function__``: modes and classes with ``__torch_dispatch__``.

They get ops as torch has them, ``tp.ops.aten.mm.default``, with plain arguments: how an op of ours is spelled
there is found by :data:`spelling`, which the facade sets. A mode is a layer, so that it sees backward too. A
class is asked below all layers, where an argument is of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from ..contexts import thread
from ..tensor.base import TensorBase, bump_version, version_of
from . import overrides
from .interception import Intercepted
from .layers import Layer, with_layer
from .op import Delegated, Op, Spec
from .state import dispatch_state


class Spelling(Protocol):
    """How ops are spelled as torch's."""

    def composed(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Return what makes the call of smaller ops, where torch has none but those."""

    def spelled(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return torch's op and its arguments."""
        raise NotImplementedError

    def differentiated_as(self, op: Op) -> Op:
        """Return the op whose derivative that of an op is, of the same arguments."""
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
    if not overrides.classes_dispatch or not thread.dispatching:
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
    composed = spelling().composed(op, args, kwargs)
    if composed is not None:
        try:
            return composed(*args, **kwargs)
        except Intercepted:
            pass  # its rule looks at memory
    asked = spelling().spelled(op, args, kwargs)
    recorded = dispatch_state.gradient
    if (
        kwargs.get("out") is not None
        or (dispatch_state.grad_disabled and not recorded.enabled())
        or not any([tensor._key.intercepts for tensor in found])
        or not _tracked((*args, *kwargs.values()))
    ):
        return ask(found, *asked)
    return _record(found, op, args, kwargs, asked)


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase):
                yield item


def _tracked(values: Iterable[Any]) -> bool:
    """Return whether a tensor among some arguments requires grad."""
    requires_grad = dispatch_state.gradient.requires_grad
    return any([tensor._state and requires_grad(tensor) for tensor in _tensors(values)])


def _record(
    found: list[Any], op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Any
) -> Any:
    """Have the classes of some arguments make a call, and record what they return as the op's result."""
    overrides.recorded = True
    gradient = dispatch_state.gradient
    original = op if op.inplace_of is None else op.inplace_of
    values: Any = (
        original.arguments(args, kwargs)
        if original.kind == "composite"
        else original.function(*args, **kwargs)
    )
    if type(values) is Delegated:
        return _in_parts(values.result, found, op, args, asked)
    is_spec = isinstance(values, Spec)
    values = tuple(values.values if is_spec else values)
    recorded_as = spelling().differentiated_as(original)
    if not is_spec and recorded_as.derivative is None:
        return _in_parts(original.decompose(values), found, op, args, asked)
    if original is not op:
        target = args[0]
        before = gradient.before_inplace(original, target, values)
        version = version_of(target)
        ask(found, *asked)
        bump_version(target)
        if before is not None:
            gradient.record_inplace(original, target, before, version)
        return target
    result = ask(found, *asked)
    outputs = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    given = {id(tensor) for tensor in _tensors((*args, *kwargs.values()))}
    if outputs and not any(
        [
            not isinstance(output, TensorBase) or id(output) in given or output.requires_grad  # type: ignore[attr-defined]
            for output in outputs
        ]
    ):
        gradient.record(recorded_as, values, outputs)
    return result


def _in_parts(result: Any, found: list[Any], op: Op, args: tuple[Any, ...], asked: Any) -> Any:
    """Return what a call's parts, which were recorded, returned; if of a shape alone, as `ones_like`, ask."""
    if op.inplace_of is not None:
        return args[0].copy_(result)
    depends = _tracked(result if isinstance(result, (list, tuple)) else (result,))
    return result if depends else ask(found, *asked)


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


def alias(tensor: Any) -> Any:
    """Return a tensor without memory once more, cut off from its history."""
    with overrides.DisableTorchFunction():
        return tensor.detach()


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
        composed = spelling().composed(op, args, kwargs)
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
