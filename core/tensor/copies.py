"""Copies of tensors as Python makes them, and what objects of subclasses have beside memory."""

from __future__ import annotations

import copyreg
from copy import deepcopy
from typing import Any

from ..dispatch import overrides
from .base import TRACKED, TensorBase, bare_tensor, extra_of, storage_of
from .creation import empty_of


def of_class(tensor: Any, cls: Any) -> Any:
    """Return what `tensor` is as an object of a subclass: its memory, and its place in the graph."""
    result = bare_tensor(cls)
    storage_of(tensor)
    for name in TensorBase.__slots__:
        object.__setattr__(result, name, getattr(tensor, name))
    return overrides.note(result)


def own_slots(cls: type) -> list[str]:
    """Return the names of a class's slots that are not every tensor's."""
    tensor_class = overrides.tensor_class
    if cls is tensor_class:
        return []
    names: list[str] = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return [name for name in names if not hasattr(tensor_class, name)]


def state_of(tensor: Any) -> Any:
    """Return a tensor's attributes, in a pair with its own slots if its class has any."""
    names = own_slots(type(tensor))
    if not names:
        return tensor.__dict__
    slots = {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}
    return tensor.__dict__, slots


def set_state(tensor: Any, state: Any) -> None:
    """Give a tensor what :func:`state_of` returned of another."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    tensor.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)


def shallow(tensor: Any) -> Any:
    """Return what ``copy.copy`` does: another tensor over the same memory, in the same place of the graph."""
    result = of_class(tensor, type(tensor))
    result._storage = storage_of(tensor)
    result.__setstate__(tensor.__getstate__())
    return result


def deep(tensor: Any, memo: dict[int, Any]) -> Any:
    """Return what ``copy.deepcopy`` does: a leaf that shares memory with the copies of what shares it now."""
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment; use .detach().clone()"
        )
    if id(tensor) in memo:
        return memo[id(tensor)]
    result = _with_memory_copied(tensor, memo)
    if type(tensor) is not type(result):
        result = of_class(result, type(tensor))
    memo[id(tensor)] = result
    if tensor.requires_grad:
        result._state = TRACKED
    if tensor.grad is not None:
        extra_of(result).grad = deepcopy(tensor.grad, memo)
    set_state(result, deepcopy(state_of(tensor), memo))
    return result


def _with_memory_copied(tensor: Any, memo: dict[int, Any]) -> Any:
    if tensor._storage is None or tensor.is_meta or "views" not in tensor._key.runtime.capabilities:
        return tensor.detach().clone()
    memory = tensor.untyped_storage().__deepcopy__(memo)
    made = empty_of((0,), tensor._key.dtype, tensor._key.device)
    return made.set_(memory, tensor.storage_offset(), tensor._shape, tensor.stride())
