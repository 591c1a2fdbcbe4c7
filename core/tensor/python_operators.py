"""What the operators of a tensor lack where the hot path runs as Python.

A slot of a compiled type serves both orders of its operands, and its call of ``binary`` costs nothing. As
Python, the other order is a method of its own, and a call costs about as much as all the checks before a
kernel: so each operator is made a copy of ``binary`` that has its op as a default.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from ..dispatch.fast_path import binary
from ..dispatch.op_registry import handle

ARITHMETIC = {
    "add": handle("add"),
    "and": handle("bitwise_and"),
    "floordiv": handle("floor_divide"),
    "lshift": handle("bitwise_left_shift"),
    "mod": handle("remainder"),
    "mul": handle("mul"),
    "or": handle("bitwise_or"),
    "rshift": handle("bitwise_right_shift"),
    "sub": handle("sub"),
    "truediv": handle("div"),
    "xor": handle("bitwise_xor"),
}
COMPARISONS = {name: handle(name) for name in ("eq", "ge", "gt", "le", "lt", "ne")}
COMMUTATIVE = {"add", "and", "mul", "or", "xor"}


def complete(operators: type[Any]) -> None:
    """Give a class with operators the reflected ones, and a copy of ``binary`` for each of two operands."""
    code = cast(FunctionType, binary).__code__
    for name, op in (ARITHMETIC | COMPARISONS).items():
        special = f"__{name}__"
        operator = FunctionType(code, binary.__globals__, special, (op, True))
        operator.__qualname__ = f"{operators.__qualname__}.{special}"
        setattr(operators, special, operator)
        if name in COMMUTATIVE:
            setattr(operators, f"__r{name}__", operator)
        elif name in ARITHMETIC:
            setattr(operators, f"__r{name}__", _reflected(operator, name))
    operators.__rpow__ = _reflected(operators.__pow__, "pow")
    operators.__rmatmul__ = _reflected(operators.__matmul__, "matmul")


def _reflected(operator: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def reflected(self: Any, other: Any) -> Any:
        return operator(other, self)

    reflected.__name__ = f"__r{name}__"
    return reflected
