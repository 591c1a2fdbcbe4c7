"""Tensors that compute every op on themselves, such as those of a layout that no kernel takes.

Such a tensor has a dispatch key of its own kind, made by :func:`intercepting_key`: its kernels raise, and its
device is no other tensor's. A call with one is served by none of the ways of dense tensors, and fails with
:class:`Intercepted` where it is first looked at or at a kernel, before it changes anything; it is then handed
to the key's runtime. No call without one is looked at. So is a call that asks for tensors of such a layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.runtime import DeviceRuntime, RefusingRuntime
from ..tensor.base import TensorBase
from ..tensor.layout import layout
from ..tensor.shapes import Shape
from .keys import DispatchKey, refusing_key
from .op import Op


class Intercepted(NotImplementedError):
    """Raised in a call with a tensor that computes its ops itself."""


class InterceptingRuntime(RefusingRuntime):
    """The runtime of such tensors.

    Parameters
    ----------
    key : DispatchKey
        That of the tensors that stand behind.
    compute : callable
        Called with an op, its arguments and its keyword arguments; returns the op's result.
    reason : str
        What users read who ask for the memory of such a tensor.
    """

    def __init__(self, key: DispatchKey, compute: Callable[..., Any], reason: str) -> None:
        super().__init__(key.runtime, Intercepted, reason)
        self.compute = compute

    strides = DeviceRuntime.strides  # rules may ask before they come to a kernel: row by row


def intercepting_key(
    key: DispatchKey,
    compute: Callable[..., Any],
    reason: str,
    runtime: type[InterceptingRuntime] = InterceptingRuntime,
) -> DispatchKey:
    """Return a new key for tensors of the device and dtype of `key` that compute their ops themselves."""
    made = refusing_key(key, runtime(key, compute, reason))
    made.intercepts = True
    return made


class NoArray:
    """What such a tensor has in place of an array: it has a shape, and raises for anything else."""

    __slots__ = ("_reason", "shape")

    def __init__(self, shape: Shape, reason: str) -> None:
        self.shape = shape
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise Intercepted(self._reason)


def intercepted(op: Op, tensor: TensorBase) -> Intercepted:
    """Return the error for a call with a tensor that intercepts."""
    runtime: Any = tensor._key.runtime
    return Intercepted(f"{op.name}(): {runtime.reason}")


def intercept(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have the first tensor or layout that intercepts compute an op."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, layout) and value.intercepts:
            return value.compute(op, args, kwargs)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, TensorBase) and item._key.intercepts:
                runtime: Any = item._key.runtime
                return runtime.compute(op, args, kwargs)
    raise TypeError(f"{op.name}(): no tensor among the arguments computes it itself")
