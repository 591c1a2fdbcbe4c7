"""``tp.utils.swap_tensors``."""

from __future__ import annotations

import weakref
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.layers import note_opaque
from tensorplug.core.tensor.base import TensorBase


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: every name and module that has one has what was the other.

    Parameters
    ----------
    t1, t2 : Tensor
        With classes whose objects are alike; a Parameter and a Tensor are.

    Raises
    ------
    RuntimeError
        If one is referred to weakly, or is in a graph that accumulates into it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> a, b = tp.ones(2), tp.zeros(3)
    >>> tp.utils.swap_tensors(a, b)
    >>> a
    tensor([0., 0., 0.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if tensor.is_leaf and tensor._node is not None:
            raise RuntimeError(
                "swap_tensors(): a graph accumulates into the tensor; free the graph first"
            )
    note_opaque("swap_tensors()")
    one: Any = t1
    other: Any = t2
    one.__class__, other.__class__ = other.__class__, one.__class__
    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
    slots = [*TensorBase.__slots__, *_own_slots(type(one)), *_own_slots(type(other))]
    for slot in dict.fromkeys(slots):
        of_one, of_other = getattr(one, slot, None), getattr(other, slot, None)
        object.__setattr__(one, slot, of_other)
        object.__setattr__(other, slot, of_one)


def _own_slots(cls: type) -> list[str]:
    found: list[str] = []
    for kind in cls.__mro__:
        if kind in (Tensor, TensorBase):
            break
        slots = kind.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return found
