"""The hot path: pointwise ops whose arguments need neither conversion nor checks.

A pointwise op of one or two arguments comes here first. What it cannot serve at once, such as operands of
two dtypes, goes on to :func:`.dispatch.general`.
"""

from __future__ import annotations

from typing import Any

from . import dispatch
from .current import current
from .dtypes import BOOL, COMPLEX, FLOATING, INTEGER, DType
from .execution import execute, note_kernel
from .op import Op
from .tensor_base import TensorBase, unset_tensor


def unary(input: Any, op: Op) -> Any:
    """Call a pointwise op of one tensor."""
    if current.interposed or not isinstance(input, TensorBase):
        return dispatch.general(op, (input,), {})
    source = input
    kind = source._kind
    index = op.index
    try:
        array = kind.kernels[index](source._array)
    except Exception as error:
        return _again(op, (input,), error)
    result: Any = kind.results[index]
    shape = source._shape
    if not shape and type(array) is not result.array_type:  # only 0-d results become scalars
        array = result.as_array(array)
    output = unset_tensor()  # set here: as Python, a call costs more than all of it
    output._array = array
    output._kind = result
    output._shape = shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    if source._state and (not current.paused or current.gradient.enabled()):
        current.gradient.record_unary(op, output, source)
    if current.paused:
        current.gradient.note_unrecorded(output)
    return output


def binary(input: Any, other: Any, op: Op, operator: bool = False) -> Any:
    """Call a pointwise op of two tensors, or of a tensor and a number.

    As a Python `operator` it leaves operands that it does not know to their own class. The op comes last, so
    that it can be a default, see :mod:`.python_operators`.
    """
    if current.interposed:
        return _unusual(op, input, other, operator)
    left = right = 0
    if isinstance(input, TensorBase):
        first = input
        kind = first._kind
        shape: Any = first._shape
        array = first._array
        left = first._state
        if isinstance(other, TensorBase):
            second = other
            if second._kind is not kind:
                return _unusual(op, input, other, operator)
            operand = second._array
            right = second._state
            if second._shape is not shape and second._shape != shape:
                shape = None
        elif fits(other, kind.dtype):
            operand = kind.scalar(other)
        else:
            return _unusual(op, input, other, operator)
    elif isinstance(other, TensorBase) and fits(input, other._kind.dtype):
        second = other
        kind = second._kind
        shape = second._shape
        array = kind.scalar(input)
        operand = second._array
        right = second._state
    else:
        return _unusual(op, input, other, operator)
    index = op.index
    try:
        array = kind.kernels[index](array, operand)
    except Exception as error:
        return _again(op, (input, other), error)
    result: Any = kind.results[index]
    if not shape and type(array) is not result.array_type:
        array = result.as_array(array)
    output = unset_tensor()
    output._array = array
    output._kind = result
    output._shape = array.shape if shape is None else shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    if (left or right) and (not current.paused or current.gradient.enabled()):
        current.gradient.record_binary(op, output, input, other, left, right, shape is None)
    if current.paused:
        current.gradient.note_unrecorded(output)
    return output


def _unusual(op: Op, input: Any, other: Any, operator: bool) -> Any:
    """Call a binary op whose operands are not of one kind."""
    if operator:
        if not is_operand(input) or not is_operand(other):
            return NotImplemented
        input = as_operand(input)
        other = as_operand(other)
    return dispatch.general(op, (input, other), {})


_NUMBERS = (int, float, complex)  # bool is an int


def is_operand(value: Any) -> bool:
    """Return whether an operator accepts `value` beside a tensor; a NumPy scalar is a number."""
    return isinstance(value, (TensorBase, *_NUMBERS)) or (
        hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ()
    )


def as_operand(value: Any) -> Any:
    """Return a tensor or Python number for a value that :func:`is_operand` accepts."""
    return value if isinstance(value, (TensorBase, *_NUMBERS)) else value.item()


def fits(value: Any, dtype: DType) -> bool:
    """Return whether a Python number leaves the dtype of a tensor beside it as it is."""
    type_ = type(value)
    if type_ is float:
        return dtype.category >= FLOATING
    if type_ is int:
        return dtype.category >= INTEGER
    if type_ is bool:
        return dtype.category >= BOOL
    return type_ is complex and dtype.category == COMPLEX


def factor_of(op: Op, input: Any, other: Any, options: dict[str, Any]) -> float | None:
    """Return the factor of `other` in a sum or difference that takes neither conversion nor checks."""
    alpha: Any = options.get("alpha")
    if len(options) != 1 or type(alpha) not in (int, float):
        return None
    if not isinstance(input, TensorBase) or not isinstance(other, TensorBase):
        return None
    kind = input._kind
    if other._kind is not kind or kind.dtype.category != FLOATING or input._shape != other._shape:
        return None
    return op.scaled_sign * alpha


def hot_path_compiled() -> bool:
    """Return whether the hot path was compiled; its calls of kernels have no Python frame then."""
    return not str(__file__).endswith(".py")


class NeedsRule(Exception):
    """Raised by a kernel on the hot path to have the call go through the op's rule."""


def _again(op: Op, args: tuple[Any, ...], error: Exception) -> Any:
    """Find out why a kernel failed: the rule raises for bad arguments, a strict warning is muted."""
    spec = op.function(*args)
    if isinstance(error, NeedsRule):
        return execute(op, spec)
    if isinstance(error, Warning):
        with spec.kind.runtime.quiet():
            return execute(op, spec)
    note_kernel(error, op, spec.kind, spec.values)
    try:
        raise error
    finally:
        del error  # its traceback has this frame: a cycle would keep the tensors
