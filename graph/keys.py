"""Keys: what calls have in common that one graph may serve."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tensorplug.autograd.graph.views import requires_grad
from tensorplug.core import Tensor
from tensorplug.core.contexts import thread
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, get_default_dtype
from tensorplug.core.dispatch.keys import default_device
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TRACKED
from tensorplug.core.tensor.exposure import are_one, taken_in
from tensorplug.core.tensor.mirrors import shows_conjugate
from tensorplug.core.tensor.shapes import Size
from tensorplug.nn import Buffer, Parameter

from .classes import goes_in_its_own_way, table_of_attributes
from .guards import has_state
from .memory import is_mirrored

__all__ = [
    "PLAIN", "Unknown", "around", "call_key", "classes_in", "described", "is_of_items", "key_of", "modes",
    "name_of", "objects_in", "records",
]  # fmt: skip

#: What arguments may be beside tensors, and results.
PLAIN = (int, float, complex, bool, str, bytes, type(None), DType, Device)


def records() -> bool:
    """Return whether this thread records for differentiation."""
    return not dispatch_state.grad_disabled or bool(thread.enabled)


def modes() -> list[Any]:
    """Return what decides how ops run, and where and of which dtype tensors are made."""
    inference = bool(dispatch_state.inference) and bool(thread.inference)
    return [records(), inference, get_default_dtype(), default_device(), around()]


def around() -> tuple[Any, ...]:
    """Return the graph keys of the layers around a call; None is one's under which calls stay eager."""
    if not dispatch_state.layers_active:
        return ()
    return tuple([layer.graph_key() for layer in thread.stack])


class Unknown(Exception):
    """An argument whose meaning a key cannot hold."""


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> tuple[Any, ...]:
    """Return what calls alike have in common, and collect the tensors.

    Raises
    ------
    Unknown
        If that cannot be told.
    """
    parts = modes()
    for value in args:
        parts.append(key_of(value, tensors))
    for name, value in kwargs.items():
        parts.append(name)
        parts.append(key_of(value, tensors))
    return tuple(parts)


def key_of(value: Any, tensors: list[Any]) -> Any:
    """Return what an argument has in common with those of calls alike, and collect the tensors in it."""
    kind = type(value)
    if kind is Tensor or kind is Parameter or kind is Buffer:
        tensor = value
        array, storage = tensor._array, tensor._storage
        for number, item in enumerate(tensors):
            other = item
            if other is tensor:
                tensors.append(value)
                return ("again", number)
            if (
                other._array is array
                or (storage is not None and other._storage is storage)
                or (taken_in and are_one(array, other._array))
            ):
                raise Unknown("two arguments show the same memory")
            if storage is not None and storage.mirror is not None and is_mirrored(tensor, other):
                raise Unknown("two arguments show each other's conjugates")
        tensors.append(value)
        key, shape = tensor._key, tensor._shape
        runtime = key.runtime
        # Along a size of 1 steps may be any.
        plain = 1 not in shape and runtime.is_contiguous(array)
        layout = None if plain else runtime.strides(array)
        needed = tensor._state == TRACKED or (tensor._state > TRACKED and requires_grad(tensor))
        attributes = vars(value)
        if storage is not None and storage.mirror is not None:
            layout = (layout, shows_conjugate(tensor))
        if not attributes:
            return (kind, key, shape, layout, needed)
        own = [(name, key_of(item, tensors)) for name, item in attributes.items()]
        return (kind, key, shape, layout, needed, *own)
    if kind in _HASHABLE:
        return (kind, repr(value) if kind is float or kind is complex else value)
    if kind is tuple or kind is list or is_of_items(value):
        return (kind, *[key_of(item, tensors) for item in value])
    if kind is dict or kind is OrderedDict:
        return (kind, *[(name_of(name), key_of(item, tensors)) for name, item in value.items()])
    if has_state(value):
        if goes_in_its_own_way(value):
            raise Unknown(f"an argument of class {kind.__name__} has a finalizer, and would stay")
        return (kind, id(value))  # which is watched, and so stays
    if kind is slice or kind is range:  # equal ranges may begin elsewhere
        return (kind, *[key_of(part, tensors) for part in (value.start, value.stop, value.step)])
    raise Unknown(f"an argument is of type {kind.__name__}")


_HASHABLE = frozenset(PLAIN)
#: How many parts of a key tell how ops run.
_MODES = 5


def name_of(value: Any) -> Any:
    """Return what the name of an item has in common with those of calls alike."""
    if type(value) is str:
        return value
    tensors: list[Any] = []
    found = key_of(value, tensors)
    if tensors:
        raise Unknown("an argument has a tensor for a name")
    return found


def is_of_items(value: Any) -> bool:
    """Return whether an object is a size or named tuple: its class and its items."""
    if not isinstance(value, tuple):
        return False
    kind: Any = type(value)
    return (kind is Size or hasattr(kind, "_fields")) and not table_of_attributes(value)


def classes_in(value: Any) -> list[type]:
    """Return the classes of named tuples among arguments, of which programs may read attributes."""
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        return classes_in([*value.values()])
    if isinstance(value, (tuple, list)):
        own = [kind] if hasattr(kind, "_fields") else []
        return own + [found for item in value for found in classes_in(item)]
    return []


def objects_in(value: Any) -> list[Any]:
    """Return the objects among arguments whose state a key does not hold."""
    kind = type(value)
    if kind is tuple or kind is list or is_of_items(value):
        return [found for item in value for found in objects_in(item)]
    if kind is dict or kind is OrderedDict:
        return objects_in([*value, *value.values()])
    if kind is Tensor or kind is Parameter or kind is Buffer:
        return objects_in(vars(value))
    return [value] if has_state(value) else []


def described(key: Any) -> str:
    """Return a key as text."""
    parts = []
    for part in key[_MODES:]:
        if isinstance(part, tuple) and len(part) >= 5 and hasattr(part[1], "dtype"):
            parts.append(f"{part[1].dtype.name}{list(part[2])}")
        else:
            parts.append(str(part))
    layers = [f", within {layer}" for layer in key[_MODES - 1]]
    return ", ".join(parts) + "".join(layers) + ("" if key[0] else ", without recording")
