# pyright: reportUnusedFunction=false, reportUnusedClass=false
"""``__torch_dispatch__`` of modes, and helpers of classes that have it, as ``torch.utils._python_dispatch``.

Modes and classes with ``__torch_dispatch__`` get ops as ATen has them, with plain arguments. In torch they
stand below autograd; here the tensors that a mode gets may require grad, and what a class computes on the
tensors inside is recorded there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.contexts import Context, Mode, thread
from tensorplug.core.dispatch.counts import count_layers
from tensorplug.core.dispatch.layers import with_layer
from tensorplug.core.dispatch.torch_dispatch import ModeLayer

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode(Mode):
    """Gets the ops that this thread computes in a ``with`` block, in backward too.

    A subclass defines ``__torch_dispatch__``. While it runs, ops meet the modes further out.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = tp.nn.functional.linear(tp.ones(1, 2), tp.ones(3, 2))
    aten.ones.default
    aten.ones.default
    aten.t.default
    aten.mm.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        """Make a mode; entering it has it get ops."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute an op, or return NotImplemented."""
        raise NotImplementedError

    def _changes(self) -> dict[str, Any]:
        # Of layers of one order the newest is the outermost.
        modes = [layer for layer in thread.stack if isinstance(layer, ModeLayer)]
        others = tuple([layer for layer in thread.stack if not isinstance(layer, ModeLayer)])
        stack = others
        for layer in [*modes, ModeLayer(self)]:
            stack = with_layer(stack, layer)
        return count_layers() | {"stack": stack}


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that computes each op as it is."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type[Any]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute the op."""
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    modes = [layer.mode for layer in thread.stack if isinstance(layer, ModeLayer)]
    return modes[-1] if modes else None


class _disable_current_modes(Context):
    """Has no mode get ops within a ``with`` block."""

    def _changes(self) -> dict[str, Any]:
        return {
            "stack": tuple([layer for layer in thread.stack if not isinstance(layer, ModeLayer)])
        }


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether a tensor's class says which tensors it is made of.

    Examples
    --------
    >>> import tensorplug as tp
    >>> is_traceable_wrapper_subclass(tp.ones(1))
    False
    """
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """Return a tensor of the same class over other tensors, those that ``callback(name, tensor)`` returns."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """Return what a class computed: of an op that writes in place, the argument that it wrote to."""
    name = func.overloadpacket.__name__
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return kwargs.get("out", out)
