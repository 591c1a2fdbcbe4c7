"""``Variable``, which older programs wrap tensors in; every tensor does now what it did."""

from __future__ import annotations

from typing import Any

from tensorplug.core.tensor.base import TensorBase

from .engine.backward_callbacks import queue_callback

__all__ = ["Variable"]


class _ExecutionEngine:
    """What torch shows of its engine; libraries queue callbacks with it."""

    queue_callback = staticmethod(queue_callback)


class _VariableType(type):
    _execution_engine = _ExecutionEngine()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TensorBase)


class Variable(metaclass=_VariableType):
    """Return a new leaf that shares the memory of `data`; deprecated in torch since 0.4.

    ``isinstance(x, Variable)`` is true for every tensor.

    Parameters
    ----------
    data : Tensor
        Any tensor.
    requires_grad : bool
        Whether gradients are computed for the result.

    Raises
    ------
    TypeError
        If `data` is not a tensor.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = Variable(tp.ones(2), requires_grad=True)
    >>> type(x).__name__, x.requires_grad, isinstance(x, Variable)
    ('Tensor', True, True)
    """

    def __new__(
        cls,
        data: Any,
        requires_grad: bool = False,
        volatile: bool = False,  # noqa: ARG004  # torch ignores it, too
    ) -> Any:
        """Detach, and ask for gradients if wanted."""
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable(): data has to be a tensor, but got {type(data).__name__}")
        tensor: Any = data
        return tensor.detach().requires_grad_(requires_grad)
