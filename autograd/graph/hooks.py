"""The graph as users meet it: nodes, their hooks, and how tensors are saved (``torch.autograd.graph``)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self
from weakref import WeakSet

from tensorplug.core.contexts import Context
from tensorplug.core.device.device import CPU
from tensorplug.core.locks import renewed
from tensorplug.core.tensor.base import bump_version
from tensorplug.core.tensor.tensor import Tensor

from ..engine.backward_callbacks import running
from .edges import GradientEdge, get_gradient_edge
from .handles import RemovableHandle
from .nodes import Node
from .saved_tensors import saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class disable_saved_tensors_hooks(Context, contextlib.ContextDecorator):
    """Have :class:`saved_tensors_hooks` raise within a ``with`` block of this thread.

    Parameters
    ----------
    error_message : str
        What the RuntimeError says.
    """

    def __init__(self, error_message: str) -> None:
        self._message = error_message

    def _changes(self) -> dict[str, Any]:
        return {"saved_hooks_disabled": self._message}


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count an in-place write to one tensor or several, which something else has done.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.zeros(2)
    >>> tp.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    written = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
    if not all(isinstance(item, Tensor) for item in written):
        raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
    for item in written:
        bump_version(item)


class allow_mutation_on_saved_tensors(saved_tensors_hooks, contextlib.ContextDecorator):
    """Let tensors be written to in place after nodes have saved them, within a ``with`` block.

    Nodes that are made there keep copies. (Torch copies when a tensor is written to, and forgets the copies
    at the end of the block.) What ``with`` gives a name to has ``clear()``, which forgets them: a backward
    that needs one raises.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(2, requires_grad=True)
    >>> with tp.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = y * y
    ...     _ = y.mul_(10)
    >>> z.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        self._copies: WeakSet[_Copy] = WeakSet()
        super().__init__(self._copied, _Copy.found)

    def _copied(self, tensor: Tensor) -> _Copy:
        copy = _Copy(tensor.clone())
        self._copies.add(copy)
        return copy

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def clear(self) -> None:
        """Forget all copies."""
        for copy in list(self._copies):
            copy.tensor = None


class _Copy:
    """What a node keeps of a tensor that may be written to."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor

    def found(self) -> Tensor:
        """Return the tensor."""
        if self.tensor is None:
            raise AssertionError(
                "a tensor that the backward needs was forgotten by the clear() of "
                "allow_mutation_on_saved_tensors"
            )
        return self.tensor


class save_on_cpu(saved_tensors_hooks, contextlib.ContextDecorator):
    """Keep what nodes save on the CPU, and bring it back for backward.

    Parameters
    ----------
    pin_memory : bool
        Whether to keep it in memory that is locked for copies to a device, from which backward takes it
        without waiting.
    device_type : str
        Whose locked memory; by default that of the first loaded device that offers it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.ones(2, requires_grad=True)
    >>> with tp.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            kept = tensor.to(CPU, copy=True)
            return tensor.device, kept.pin_memory(device_type or None) if pin_memory else kept

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once the gradients of all of `tensors` are computed, or with the first (``mode="any"``).

    Parameters
    ----------
    tensors : sequence of Tensor
        Each requires grad.
    fn : callable
        Gets the list of gradients, with None for those that took no part; or, with "any", the first one.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = renewed(threading.Lock())
    known: dict[int, Any] = {}
    passes: list[Any] = []

    def note(position: int) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            with lock:
                current = running.current
                if passes != [current]:  # the one before broke off
                    known.clear()
                    passes[:] = [current]
                known[position] = gradient
                gradients = [known.get(i) for i in range(len(tensors))]
                last = not any(
                    [i not in known and current.comes_to(t) for i, t in enumerate(tensors)]
                )
                fire = last if mode == "all" else len(known) == 1
                if last:
                    known.clear()
                    passes.clear()
            if fire:
                fn(gradient if mode == "any" else gradients)

        return hook

    handles = [tensor.register_hook(note(i)) for i, tensor in enumerate(tensors)]
    whole: dict[int, Callable[..., Any]] = {}
    handle = RemovableHandle.register(whole, fn)
    handle.also = handles
    return handle
