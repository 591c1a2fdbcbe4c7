"""``tp.utils.swap_tensors``."""

from __future__ import annotations

import weakref
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch import overrides
from tensorplug.core.dispatch.layers import note_opaque
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.copies import own_slots

_UNSET: Any = object()


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: every name and module that has one has what was the other.

    Parameters
    ----------
    t1, t2 : Tensor
        Of classes with the same slots; a Parameter and a Tensor have none.

    Raises
    ------
    RuntimeError
        If one is referred to weakly, their classes have different slots, or a graph accumulates into one.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, b = tp.ones(2), tp.zeros(3)
    >>> tp.utils.swap_tensors(a, b)
    >>> a
    tensor([0., 0., 0.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if len(weakref.getweakrefs(tensor)) > len(overrides.notes_of(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if tensor.is_leaf and tensor._node is not None:
            raise RuntimeError(
                "swap_tensors(): a graph accumulates into the tensor; free the graph first"
            )
    slots = own_slots(type(t1))
    if slots != own_slots(type(t2)):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    note_opaque("swap_tensors()")
    one: Any = t1
    other: Any = t2
    one.__class__, other.__class__ = other.__class__, one.__class__
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    for slot in (*TensorBase.__slots__, *slots):
        of_one, of_other = getattr(one, slot, _UNSET), getattr(other, slot, _UNSET)
        for tensor, value, before in ((one, of_other, of_one), (other, of_one, of_other)):
            if value is not _UNSET:
                object.__setattr__(tensor, slot, value)
            elif before is not _UNSET:
                object.__delattr__(tensor, slot)
    overrides.note_anew(one)
    overrides.note_anew(other)
