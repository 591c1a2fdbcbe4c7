"""The operators of a tensor, and its indexing: what Python calls by a sign."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..dispatch.fast_path import OPERANDS, binary, is_operand, unary
from ..dispatch.op import Op
from ..dispatch.op_registry import handle
from ..dispatch.out_variants import inplace
from ..dispatch.state import dispatch_state
from . import python_operators
from .base import TensorBase

if TYPE_CHECKING:
    from .tensor import Tensor

T = TypeVar("T")

ABS = handle("abs")
ADD = handle("add")
AND = handle("bitwise_and")
DIV = handle("div")
EQ = handle("eq")
FLOOR_DIVIDE = handle("floor_divide")
GE = handle("ge")
GT = handle("gt")
INVERT = handle("bitwise_not")
LE = handle("le")
LSHIFT = handle("bitwise_left_shift")
LT = handle("lt")
MATMUL = handle("matmul")
MUL = handle("mul")
NE = handle("ne")
NEG = handle("neg")
OR = handle("bitwise_or")
POW = handle("pow")
REMAINDER = handle("remainder")
RSHIFT = handle("bitwise_right_shift")
SUB = handle("sub")
XOR = handle("bitwise_xor")


class Operators(TensorBase):
    """Base of Tensor with its operators.

    Compiled, they are slots of the type that serve a tensor on either side, so `self` may be a number. Run as
    Python they are completed by :func:`.python_operators.complete`.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return binary(self, other, ADD, True)

    def __sub__(self, other: Any) -> Tensor:
        return binary(self, other, SUB, True)

    def __mul__(self, other: Any) -> Tensor:
        return binary(self, other, MUL, True)

    def __truediv__(self, other: Any) -> Tensor:
        return binary(self, other, DIV, True)

    def __floordiv__(self, other: Any) -> Tensor:
        return binary(self, other, FLOOR_DIVIDE, True)

    def __mod__(self, other: Any) -> Tensor:
        return binary(self, other, REMAINDER, True)

    def __and__(self, other: Any) -> Tensor:
        return binary(self, other, AND, True)

    def __or__(self, other: Any) -> Tensor:
        return binary(self, other, OR, True)

    def __xor__(self, other: Any) -> Tensor:
        return binary(self, other, XOR, True)

    def __lshift__(self, other: Any) -> Tensor:
        return binary(self, other, LSHIFT, True)

    def __rshift__(self, other: Any) -> Tensor:
        return binary(self, other, RSHIFT, True)

    def __lt__(self, other: Any) -> Tensor:
        return binary(self, other, LT, True)

    def __le__(self, other: Any) -> Tensor:
        return binary(self, other, LE, True)

    def __gt__(self, other: Any) -> Tensor:
        return binary(self, other, GT, True)

    def __ge__(self, other: Any) -> Tensor:
        return binary(self, other, GE, True)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return binary(self, other, EQ, True)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return binary(self, other, NE, True)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __neg__(self) -> Tensor:
        return unary(self, NEG)

    def __abs__(self) -> Tensor:
        return unary(self, ABS)

    def __invert__(self) -> Tensor:
        return unary(self, INVERT)

    def __pos__(self) -> Self:
        return self

    def __pow__(self, other: Any) -> Tensor:
        return _unless_array(POW, self, other)

    def __matmul__(self, other: Any) -> Tensor:
        left: Any = self
        if isinstance(left, TensorBase) and isinstance(other, TensorBase):
            return MATMUL.call(left, other)
        computed: Any = dispatch_state.beside_array(MATMUL, left, other)
        return NotImplemented if computed is None else computed

    def __iadd__(self, other: Any) -> Self:
        return _in_place(ADD, self, other)

    def __isub__(self, other: Any) -> Self:
        return _in_place(SUB, self, other)

    def __imul__(self, other: Any) -> Self:
        return _in_place(MUL, self, other)

    def __itruediv__(self, other: Any) -> Self:
        return _in_place(DIV, self, other)

    def __ifloordiv__(self, other: Any) -> Self:
        return _in_place(FLOOR_DIVIDE, self, other)

    def __imod__(self, other: Any) -> Self:
        return _in_place(REMAINDER, self, other)

    def __ipow__(self, other: Any) -> Self:
        return _in_place(POW, self, other)

    def __iand__(self, other: Any) -> Self:
        return _in_place(AND, self, other)

    def __ior__(self, other: Any) -> Self:
        return _in_place(OR, self, other)

    def __ixor__(self, other: Any) -> Self:
        return _in_place(XOR, self, other)

    def __ilshift__(self, other: Any) -> Self:
        return _in_place(LSHIFT, self, other)

    def __irshift__(self, other: Any) -> Self:
        return _in_place(RSHIFT, self, other)

    # --- indexing ---

    def __getitem__(self, key: Any) -> Tensor:
        return dispatch_state.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        dispatch_state.set_item(self, key, value)

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")


def _in_place(op: Op, target: T, other: Any) -> T:
    if not is_operand(other):
        return NotImplemented
    inplace(op, f"{op.name}_", target, (other,), {})
    return target


def _unless_array(op: Op, input: Any, other: Any) -> Any:
    """Call an op as an operator."""
    if not (isinstance(input, OPERANDS) and isinstance(other, OPERANDS)):
        computed = dispatch_state.beside_array(op, input, other)
        if computed is not None:
            return computed
        if not is_operand(input) or not is_operand(other):
            return NotImplemented
    return op.call(input, other)


if isinstance(binary, FunctionType):
    python_operators.complete(Operators)
