"""What a kernel promises, and how it is held to it.

The declaration of an op says shape and dtype of its outputs. Shapes are checked wherever they are
not known to be right; on the hot path, and for dtypes, the first call of each kernel is checked,
since a kernel that is wrong is mostly wrong always. ``TENSORPLUG_CHECK=1`` in the environment, or
:func:`check_every_call`, has every call checked: what a kernel's author, and the conformance suite,
should do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..device.dtypes import DType
from ..device.meta import empty_meta
from ..errors import KernelContractError, TensorplugError
from ..labels import RAISED_BY
from ..tensor.base import TensorBase
from ..tensor.shapes import Shape, broadcast_shapes
from . import keys
from .choice import describe_kernel
from .keys import DispatchKey
from .layers import gradient_off, isolated
from .op_registry import Op
from .state import dispatch_state

#: Whether every call is checked, rather than the first of each kernel.
every_call: bool = os.environ.get("TENSORPLUG_CHECK", "") not in ("", "0")


def check_every_call(on: bool = True) -> None:
    """Check the result of every kernel call, or only of the first call of each kernel."""
    global every_call
    every_call = on
    dispatch_state.verify = on
    keys.reset_tables()


def violation(op: Op, key: DispatchKey, got: str, expected: str) -> KernelContractError:
    """Return the error for a kernel whose result is not what its op's declaration says."""
    return KernelContractError(
        f"{op.name}: {describe_kernel(op, key)} returned {got}, but the op's declaration says "
        f"{expected}; please report this to the author of the kernel"
    )


def note_kernel(error: BaseException, op: Op, key: DispatchKey, raw: Sequence[Any]) -> None:
    """Add a note to an error, once and not to ours: whose kernel raised it, and for what call."""
    if isinstance(error, (Warning, TensorplugError)) or any(
        note.startswith(RAISED_BY) for note in getattr(error, "__notes__", ())
    ):
        return
    with contextlib.suppress(Exception):  # the error itself matters more
        given = ", ".join(
            [_short_argument(key, v) for v in (raw if isinstance(raw, (list, tuple)) else ())]
        )
        error.add_note(
            f"{RAISED_BY}{describe_kernel(op, key)}, for {op.name}({given}) on {key.device}"
        )


def _short_argument(key: DispatchKey, value: Any) -> str:
    if isinstance(value, TensorBase):
        return f"{value._key.dtype.name} {list(value._shape)}"
    if isinstance(value, key.array_type):
        return f"{key.runtime.dtype(value).name} {list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_short_argument(key, item) for item in value[:4]])}]"
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:27]}..."


def check_array(op: Op, key: DispatchKey, array: Any, shape: Shape | None, dtype: DType) -> None:
    """Raise KernelContractError unless a kernel's result has the declared shape and dtype."""
    if type(array) is not key.array_type:
        try:
            converted = key.as_array(array)
        except Exception as error:
            raise violation(
                op, key, f"{_short(array)} ({error})", f"an array of {key.array_type.__name__}"
            ) from error
        if type(converted) is not key.array_type:
            raise violation(op, key, _short(array), f"an array of {key.array_type.__name__}")
        array = converted
    if shape is not None and tuple(array.shape) != shape:
        raise violation(op, key, f"shape {list(array.shape)}", f"{list(shape)}")
    found = key.runtime.dtype(array)
    if found is not dtype:
        raise violation(op, key, f"dtype {found.name}", dtype.name)


def check_pointwise(
    op: Op, key: DispatchKey, raw: Sequence[Any], result: Any, dtype: DType
) -> None:
    """Check the result of a pointwise kernel, whose shape is that of its arguments broadcast."""
    shapes = [tuple(value.shape) for value in raw if isinstance(value, key.array_type)]
    check_array(op, key, result, broadcast_shapes(*shapes), dtype)


def is_uniform(key: DispatchKey, raw: Sequence[Any]) -> bool:
    """Return whether all arguments of a call are arrays of one key."""
    dtype, runtime = key.dtype, key.runtime
    return all(type(v) is key.array_type and runtime.dtype(v) is dtype for v in raw)


def check_outputs(
    op: Op, key: DispatchKey, results: Any, outputs: Sequence[tuple[Shape | None, DType]]
) -> None:
    """Check what a primitive's kernel returned for one call."""
    if len(outputs) == 1:
        results = (results,)
    elif not isinstance(results, (tuple, list)) or len(results) != len(outputs):
        raise violation(op, key, _short(results), f"a tuple of {len(outputs)} arrays")
    for array, (shape, dtype) in zip(results, outputs, strict=True):
        check_array(op, key, array, shape, dtype)


def check_composite(
    op: Op,
    key: DispatchKey,
    results: Any,
    values: tuple[Any, ...],
) -> None:
    """Check what a kernel for a composite returned against the composite's body on meta tensors.

    A body that looks at data, or at arguments that are no tensors of this key, cannot be asked.
    """
    try:
        with isolated(), gradient_off():
            expected = op.decompose(_metas(values))
    except Exception:
        return
    tensors = expected if isinstance(expected, (tuple, list)) else (expected,)
    if isinstance(expected, (tuple, list)) and len(expected) == 1 and len(results) == 1:
        results = results[0]
    if all(isinstance(tensor, TensorBase) and tensor._key.is_meta for tensor in tensors):
        check_outputs(op, key, results, [(t._shape, t._key.dtype) for t in tensors])


def _metas(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return empty_meta(value._shape, value._key.dtype)
    if type(value) in (list, tuple):
        return type(value)([_metas(item) for item in value])
    return value


def checking(
    op: Op, key: DispatchKey, kernel: Callable[..., Any], dtype: DType
) -> Callable[..., Any]:
    """Return a pointwise kernel with a check of each result, which should be of `dtype`."""

    def checked(*raw: Any) -> Any:
        result = kernel(*raw)
        if is_uniform(key, raw):
            check_pointwise(op, key, raw, result, dtype)
        return result

    return checked


def _short(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


dispatch_state.verify = every_call
