"""Operators of a tensor and a NumPy array: NumPy computes them, and the result is a tensor.

So it is in torch for ``tensor + array``, because the array's reflected operator converts the tensor and
``__array_wrap__`` the result; here it is so for all operators, and in both orders.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..dispatch.op import Op
from ..dispatch.op_registry import handle
from .base import TensorBase
from .host import from_array, is_array, to_numpy
from .python_operators import ARITHMETIC, COMPARISONS

_FUNCTIONS: dict[Op, Callable[[Any, Any], Any]] = {
    op: getattr(operator, f"__{name}__")
    for name, op in (
        ARITHMETIC | COMPARISONS | {"pow": handle("pow"), "matmul": handle("matmul")}
    ).items()
}


def beside_array(op: Op, input: Any, other: Any) -> Any:
    """Return what an operator gives for a tensor and a NumPy array; None if neither is an array.

    Raises
    ------
    RuntimeError
        If the tensor requires grad: what NumPy computes is not recorded.
    """
    if not (is_array(input) or is_array(other)):
        return None
    return from_array(_FUNCTIONS[op](_array(input), _array(other)))


def _array(value: Any) -> Any:
    return to_numpy(value) if isinstance(value, TensorBase) else value  # type: ignore[arg-type]
