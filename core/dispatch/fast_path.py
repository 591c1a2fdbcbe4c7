"""The hot path: pointwise ops whose arguments need neither conversion nor checks.

A pointwise op of one or two arguments comes here first. What it cannot serve at once, such as operands of
two dtypes, goes on to :func:`.dispatcher.general`.
"""

from __future__ import annotations

from typing import Any

from ..tensor.base import TensorBase, unset_tensor
from . import dispatcher
from .arguments import fits, fits_rounded, is_scalar, plain
from .execution import execute, note_kernel
from .interception import Intercepted, intercept
from .op import Op
from .overrides import relevant
from .state import dispatch_state


def unary(input: Any, op: Op) -> Any:
    """Call a pointwise op of one tensor."""
    if not isinstance(input, TensorBase) or (
        dispatch_state.layers_active and dispatch_state.takes_over((input,), None)
    ):
        return dispatcher.general(op, (input,), {})
    source = input
    key = source._key
    index = op.index
    try:
        array = key.kernels[index](source._array)
    except Exception as error:
        return _retry(op, (input,), error)
    result: Any = key.results[index]
    shape = source._shape
    if not shape and type(array) is not result.array_type:  # only 0-d results become scalars
        array = result.as_array(array)
    output = unset_tensor()  # set here: as Python, a call costs more than all of it
    output._array = array
    output._key = result
    output._shape = shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    output._view = None
    if source._state and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
        dispatch_state.gradient.record_unary(op, output, source)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def binary(input: Any, other: Any, op: Op, operator: bool = False) -> Any:
    """Call a pointwise op of two tensors, or of a tensor and a number.

    As a Python `operator` it leaves operands that it does not know to their own class. The op comes last, so
    that it can be a default, see :mod:`.python_operators`.
    """
    if dispatch_state.layers_active and dispatch_state.takes_over((input, other), None):
        return _slow_path(op, input, other, operator)
    left = right = 0
    if isinstance(input, TensorBase):
        first = input
        key = first._key
        shape: Any = first._shape
        array = first._array
        left = first._state
        if isinstance(other, TensorBase):
            second = other
            if second._key is not key:
                return dispatcher.promoted(op, input, other)
            operand = second._array
            right = second._state
            if second._shape is not shape and second._shape != shape:
                shape = None
        elif fits(other, key.dtype) or (not op.scales and fits_rounded(other, key.dtype)):
            try:
                operand = key.scalar(other)
            except (RuntimeError, OverflowError):  # the op's rule knows what becomes of it
                return _slow_path(op, input, other, operator)
        else:
            return _slow_path(op, input, other, operator)
    elif isinstance(other, TensorBase) and (
        (fits(input, other._key.dtype) and not (op.scales and other._key.dtype.is_half))
        or (not op.scales and fits_rounded(input, other._key.dtype))
    ):
        second = other
        key = second._key
        shape = second._shape
        try:
            array = key.scalar(input)
        except (RuntimeError, OverflowError):
            return _slow_path(op, input, other, operator)
        operand = second._array
        right = second._state
    else:
        return _slow_path(op, input, other, operator)
    index = op.index
    try:
        array = key.kernels[index](array, operand)
    except Exception as error:
        return _retry(op, (input, other), error)
    result: Any = key.results[index]
    if not shape and type(array) is not result.array_type:
        array = result.as_array(array)
    output = unset_tensor()
    output._array = array
    output._key = result
    output._shape = array.shape if shape is None else shape
    output._state = 0
    output._node = None
    output._writes = 0
    output._storage = None
    output._extra = None
    output._view = None
    if (left or right) and (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()):
        dispatch_state.gradient.record_binary(op, output, input, other, left, right, shape is None)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _slow_path(op: Op, input: Any, other: Any, operator: bool) -> Any:
    """Call a binary op whose operands are not of one key."""
    if operator and not (isinstance(input, OPERANDS) and isinstance(other, OPERANDS)):
        computed = dispatch_state.beside_array(op, input, other)
        if computed is not None:
            return computed
        if not is_operand(input) or not is_operand(other):
            return made_elsewhere(op, input, other)
    if op.scales:
        if operator and op.reflected is not None and not isinstance(input, TensorBase):
            return op.reflected(input, other)
        return dispatcher.promoted(op, input, other)
    return dispatcher.general(op, (input, other), {})


def made_elsewhere(op: Op, input: Any, other: Any) -> Any:
    """Return what an operand that is no tensor makes of an operator; NotImplemented if it is not asked."""
    if relevant((input, other)):
        return op.call(input, other)
    return NotImplemented


OPERANDS = (TensorBase, int, float, complex)  # bool is an int


def is_operand(value: Any) -> bool:
    """Return whether an operator accepts `value` beside a tensor; a NumPy scalar may be a number, or text."""
    return isinstance(value, OPERANDS) or (is_scalar(value) and isinstance(plain(value), OPERANDS))


def hot_path_compiled() -> bool:
    """Return whether the hot path was compiled; its calls of kernels have no Python frame then."""
    return not str(__file__).endswith(".py")


class NeedsRule(Exception):
    """Raised by a kernel on the hot path to have the call go through the op's rule."""


def _retry(op: Op, args: tuple[Any, ...], error: Exception) -> Any:
    """Find out why a kernel failed: the rule raises for bad arguments, a strict warning is suppressed."""
    if isinstance(error, Intercepted):
        return intercept(op, args, {})
    spec = op.function(*args)
    if isinstance(error, NeedsRule):
        return execute(op, spec)
    if isinstance(error, Warning):
        with spec.key.runtime.quiet():
            return execute(op, spec)
    note_kernel(error, op, spec.key, spec.values)
    try:
        raise error
    finally:
        del error  # its traceback has this frame: a cycle would keep the tensors
