"""The operators of a tensor, its indexing, and views that it has by name: its methods on the hot path."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..device.dtypes import DType
from ..dispatch.execution import show
from ..dispatch.fast_path import OPERANDS, binary, is_operand, made_elsewhere, unary
from ..dispatch.op import Op
from ..dispatch.op_registry import handle
from ..dispatch.overrides import relevant
from ..dispatch.state import dispatch_state
from ..dispatch.view_calls import show_again
from ..dispatch.view_plans import ABSENT
from ..dispatch.writes import inplace
from . import python_operators
from .base import TensorBase, extra_of, new_tensor, storage_of
from .layout import channels_last, channels_last_3d, contiguous_format, in_format
from .shapes import Shape

if TYPE_CHECKING:
    from .tensor import Tensor

T = TypeVar("T")

ABS = handle("abs")
ADD = handle("add")
AND = handle("bitwise_and")
CONTIGUOUS = handle("contiguous")
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
POSITIVE = handle("positive")
OR = handle("bitwise_or")
PERMUTE = handle("permute")
POW = handle("pow")
REMAINDER = handle("remainder")
RSHIFT = handle("bitwise_right_shift")
SUB = handle("sub")
T_OP = handle("t")
TRANSPOSE = handle("transpose")
VIEW = handle("view")
VIEW_DTYPE = handle("view_dtype")
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

    def __pos__(self) -> Tensor:
        return POSITIVE.call(self)

    def __pow__(self, other: Any) -> Tensor:
        return _unless_array(POW, self, other)

    def __matmul__(self, other: Any) -> Tensor:
        left: Any = self
        if isinstance(left, TensorBase) and isinstance(other, TensorBase):
            return MATMUL.call(left, other)
        computed: Any = dispatch_state.beside_array(MATMUL, left, other)
        return made_elsewhere(MATMUL, left, other) if computed is None else computed

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

    # --- views ---

    def view(self, *shape: Any, dtype: DType | None = None, size: Any = None) -> Tensor:
        """Return the same memory in another shape, ``view(2, -1)``, or as another dtype, ``view(tp.int32)``.

        Raises
        ------
        RuntimeError
            If the sizes do not fit, or no strides show the memory so; ``reshape`` copies then.
        """
        count = len(shape)
        if dtype is None and size is None and not dispatch_state.layers_active and count < 5:
            shown = show_again(
                VIEW,
                self,
                shape[0] if count > 0 else ABSENT,
                shape[1] if count > 1 else ABSENT,
                shape[2] if count > 2 else ABSENT,
                shape[3] if count > 3 else ABSENT,
            )
            if shown is not None:
                return shown
        if dtype is None and len(shape) == 1 and isinstance(shape[0], DType):
            dtype = shape[0]
        if dtype is not None:
            return VIEW_DTYPE.call(self, dtype)
        return VIEW.call(self, *shape) if size is None else VIEW.call(self, size)

    @property
    def T(self) -> Tensor:
        """A view with all dimensions in reverse order."""
        shape = self._shape
        if dispatch_state.layers_active or len(shape) != 2:
            return show(PERMUTE, self, _reversed(len(shape)), shape[::-1])
        shown = show_again(T_OP, self, ABSENT, ABSENT, ABSENT, ABSENT)
        return T_OP.call(self) if shown is None else shown

    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged."""
        shape = self._shape
        if not shape:
            return self  # type: ignore[return-value]
        if len(shape) < 2:
            raise RuntimeError(
                "tensor.mT is only supported on matrices or batches of matrices. Got "
                f"{len(shape)}-D tensor."
            )
        if not dispatch_state.layers_active:
            shown = show_again(TRANSPOSE, self, -2, -1, ABSENT, ABSENT)
            if shown is not None:
                return shown
        return TRANSPOSE.call(self, -2, -1)

    def contiguous(self, memory_format: Any = contiguous_format) -> Tensor:
        """Return the tensor itself if its elements lie in the order of a memory format, else a copy.

        See :func:`tensorplug.contiguous`.
        """
        key = self._key
        if not (dispatch_state.layers_active or key.is_meta or key.intercepts):
            runtime = key.runtime
            if memory_format is contiguous_format:
                if runtime.is_contiguous(self._array):
                    return self  # type: ignore[return-value]
            elif (memory_format is channels_last or memory_format is channels_last_3d) and (
                in_format(self._shape, runtime.strides(self._array), memory_format)
            ):
                return self  # type: ignore[return-value]
        return CONTIGUOUS.call(self, memory_format)

    def detach(self) -> Tensor:
        """Return a tensor over the same memory that requires no grad."""
        detached = new_tensor(self._array, self._key, self._shape)
        detached._storage = storage_of(self)
        if self._extra is not None and self._extra.inference:
            extra_of(detached).inference = True
        return detached


@functools.cache
def _reversed(ndim: int) -> tuple[Shape]:
    """Return the arguments of the permutation that reverses so many dimensions."""
    return (tuple(range(ndim))[::-1],)


def _in_place(op: Op, target: T, other: Any) -> T:
    if not is_operand(other):
        if relevant((other,)):  # its answer takes the name that the tensor had, as in torch
            return inplace(op, f"{op.name}_", target, (other,), {})
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
            return made_elsewhere(op, input, other)
    return op.call(input, other)


if isinstance(binary, FunctionType):
    python_operators.complete(Operators)
