"""Ops whose results lie row by row, in whatever order of memory their input is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.base import TensorBase
from .op import Op


def in_rows(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable of an op that takes a copy of its input where that does not lie row by row."""
    first = op.names[0]

    def call_of_rows(*args: Any, **kwargs: Any) -> Any:
        input = args[0] if args else kwargs.get(first)
        if isinstance(input, TensorBase) and len(input._shape) > 1:
            tensor: Any = input
            key, array = tensor._key, tensor._array
            if type(array) is key.array_type and not key.runtime.is_contiguous(array):
                if args:
                    args = (tensor.contiguous(), *args[1:])
                else:
                    kwargs = kwargs | {first: tensor.contiguous()}
        return call(*args, **kwargs)

    return call_of_rows
