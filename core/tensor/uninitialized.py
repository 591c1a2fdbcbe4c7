"""Uninitialized parameters: tensors without a shape yet, with which every op raises.

No op looks whether it got one. Such a tensor has a key whose kernels raise, and in place of shape and array
an object that raises whatever is done with it; so a call fails in its rule or at its kernel, before it
changes anything.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..device.runtime import RefusingRuntime
from ..dispatch.keys import DispatchKey, refusing_key


class _Uninitialized:
    """Stands for a shape or an array."""

    __slots__ = ("_error", "_reason")

    def __init__(self, error: type[Exception], reason: str) -> None:
        self._error = error
        self._reason = reason

    def _refuse(self, *args: Any) -> NoReturn:
        raise self._error(self._reason)

    __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = __hash__ = _refuse
    __eq__ = __ne__ = __add__ = __radd__ = __getattr__ = _refuse


_keys: dict[tuple[DispatchKey, type[Exception], str], DispatchKey] = {}


def refuse_ops(tensor: Any, error: type[Exception], reason: str) -> None:
    """Have every op on a tensor raise ``error(reason)``; setting ``tensor.data`` ends it.

    Parameters
    ----------
    tensor : Tensor
        Keeps its dtype, and what it knows of gradients.
    error, reason
        What is raised.
    """
    known = _keys.get((tensor._key, error, reason))
    if known is None:
        runtime = RefusingRuntime(tensor._key.runtime, error, reason)
        known = _keys.setdefault((tensor._key, error, reason), refusing_key(tensor._key, runtime))
    tensor._key = known
    tensor._array = tensor._shape = _Uninitialized(error, reason)
