"""What an op returns is a view of its arguments, or of nothing.

A body may end in a view of a tensor that it made, such as one row of it. Nobody will see that tensor again,
so what is written to the result concerns the result alone, as it does where a kernel made it.
"""

from __future__ import annotations

from typing import Any

from ..tensor.base import Storage, TensorBase
from .execution import execute
from .op import Delegated, Op
from .state import dispatch_state


def executed(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a primitive by its rule."""
    spec = op.function(*args, **kwargs)
    if type(spec) is Delegated:
        return released(spec.result, args, kwargs)
    return execute(op, spec)


def released(results: Any, args: Any, kwargs: Any) -> Any:
    """Return what a body made of the arguments, its views of other tensors made tensors of their own."""
    if isinstance(results, TensorBase):
        result = results
        if result._view is not None and not _is_shown(_memory(result._storage), (args, kwargs)):
            dispatch_state.gradient.release_view(result)
    elif isinstance(results, (tuple, list)):
        shown = None  # the memory of an argument, which most parts of it have
        for item in results:
            if isinstance(item, TensorBase):
                part = item
                if shown is not None and part._storage is shown:
                    continue
                released(part, args, kwargs)
                if part._view is not None:
                    shown = part._storage
            else:
                released(item, args, kwargs)
    return results


def _memory(storage: Storage | None) -> Storage | None:
    """Return the memory that a memory shows the conjugate of; of any other, itself."""
    if storage is not None and storage.mirror is not None and storage.mirror.shows is not None:
        shown: Storage | None = storage.mirror.shows[0]._storage
        return shown
    return storage


def _is_shown(memory: Storage | None, values: Any) -> bool:
    """Return whether a tensor among nested values has some memory."""
    for value in values:
        if isinstance(value, TensorBase):
            tensor = value
            if _memory(tensor._storage) is memory:
                return True
        elif isinstance(value, (tuple, list)):
            if _is_shown(memory, value):
                return True
        elif isinstance(value, dict) and _is_shown(memory, value.values()):
            return True
    return False
