"""Functions of Python on each element of a tensor, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import type_name
from .creation import tensor
from .predicates import is_tensor


def mapped(target: Any, name: str, function: Callable[..., Any], *others: Any) -> Any:
    """Replace each element of `target` by a function of it and of its neighbours in `others`; return it.

    Parameters
    ----------
    target : Tensor
        What is written, on "cpu".
    name : str
        The method that errors tell.
    function : callable
        Of as many numbers as there are tensors; returns a number.
    others : Tensor
        Of shapes that expand to `target`'s.

    Raises
    ------
    RuntimeError
        If a tensor requires grad.
    TypeError
        If a tensor is on another device or of another dtype, or the function returns what is no number.
    """
    for value in (target, *others):
        if not is_tensor(value):
            raise TypeError(f"{name}(): argument 'tensor' must be Tensor, not {type_name(value)}")
        if value.requires_grad:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
        if value.device.type != "cpu":
            raise TypeError(f"{name} is only implemented on CPU tensors, got one on {value.device}")
        if value.dtype is not target.dtype:
            raise TypeError(f"{name}: expected tensors of {target.dtype}, got one of {value.dtype}")
    operands = [target.detach(), *[value.expand(target._shape) for value in others]]
    rows = [value.flatten().tolist() for value in operands]
    values = [function(*numbers) for numbers in zip(*rows, strict=True)]
    for value in values:
        if not (hasattr(value, "__float__") or hasattr(value, "__complex__")):
            raise TypeError(
                f"'{type(value).__name__}' object cannot be interpreted as an element of {target.dtype}"
            )
    target.copy_(tensor(values, dtype=target.dtype).reshape(target._shape))
    return target
