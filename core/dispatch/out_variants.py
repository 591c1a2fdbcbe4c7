"""Results that go into tensors that are given: ``out=``."""

from __future__ import annotations

import math
from typing import Any

from ..device.dtypes import as_dtype, can_cast
from ..tensor.base import TensorBase, bump_version
from ..tensor.shapes import Shape
from . import dispatcher
from .composite_runs import any_tracked
from .execution import broadcast_error, execute
from .op import Delegated, Op, first_tensor
from .out_dtypes import (
    ERRORS,
    EXACT,
    EXACT_CALLS,
    NAMED,
    OF_TARGET,
    SILENT,
    check_out,
    check_own_dtype,
    fits_number,
    uncastable,
    unlike,
)
from .state import dispatch_state
from .writes import store, write


def run_out(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Call an op, below all active layers, and write its results into the tensors `out`."""
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, TensorBase):
            raise TypeError(f"{op.name}(): out= takes a tensor, got {type(target).__name__}")
    refuse_tracked_out(op, args, kwargs, targets)
    for target in targets:
        if target._extra is not None and target._extra.inference:
            dispatch_state.gradient.before_inplace(op, target, ())
    checked = False
    if op.pointwise and len(targets) == 1:
        spec = op.function(*args, **kwargs)
        if type(spec) is Delegated:
            results = spec.result
        else:
            if op in EXACT and not fits_number(targets[0]._key.dtype, spec):
                check_own_dtype(op, targets[0]._key.dtype, spec.outputs[0][1], None)
            checked = True
            check_out(op.name, targets[0], spec.outputs[0][1], spec.key)
            if targets[0]._shape == spec.outputs[0][0]:
                write(op, spec, targets[0])
                return out
            results = execute(op, spec)
    else:
        if "device" in op.names and "dtype" in op.names:
            kwargs = _of_target(op, args, kwargs, targets[0])
        elif "dtype" in op.names:
            position = op.names.index("dtype")
            asked = args[position] if len(args) > position else kwargs.get("dtype")
            if asked is not None:
                own, wanted = targets[0]._key.dtype, as_dtype(asked)
                # A norm of complex numbers is real.
                if wanted is not own and (own.is_complex or not wanted.is_complex):
                    raise unlike(op, targets[0]._key.dtype, as_dtype(asked))
            elif op in OF_TARGET:
                kwargs = {**kwargs, "dtype": targets[0]._key.dtype}
        results = dispatcher.run(op, args, kwargs)
    computed = results if isinstance(results, tuple) else (results,)
    if len(computed) != len(targets):
        raise TypeError(f"{op.name}(): out= takes {len(computed)} tensors, got {len(targets)}")
    first = first_tensor((*args, *kwargs.values()))
    for position, (target, result) in enumerate(zip(targets, computed, strict=True)):
        taken = target._key.dtype in EXACT.get(op, ())
        if op in EXACT_CALLS:
            given = dict(zip(op.names, args, strict=False)) | kwargs
            if EXACT_CALLS[op](given) and target._key.dtype is not result._key.dtype:
                raise unlike(op, target._key.dtype, result._key.dtype)
        elif not checked and (op in EXACT or not (op.pointwise or op.elementwise)):
            own = target._key.dtype
            check_own_dtype(op, own, result._key.dtype, first, len(targets), position)
        converted = (target if taken else result)._key.dtype
        if op in NAMED and not can_cast(converted, target._key.dtype):
            raise uncastable(op, position, target._key.dtype, converted)
        check_out(op.name, target, converted, result._key, ERRORS.get(op, RuntimeError))
        by_element = op.pointwise or op.elementwise
        if by_element and target._shape != result._shape and any([target is arg for arg in args]):
            raise broadcast_error(op.name, target._shape, result._shape)  # that is a call in place
    for target, result in zip(targets, computed, strict=True):
        if target._shape != result._shape:
            if op.fills and math.prod(target._shape) == math.prod(result._shape):
                result = result.reshape(target._shape)
            else:
                resize_out(op, target, result._shape)
        store(target, result._array, result._key)
        bump_version(target)
    if kwargs.get("requires_grad"):  # of a factory
        targets[0].requires_grad_()
    # A named tuple names the tensors that were given.
    named: Any = type(results)
    return named._make(targets) if hasattr(named, "_make") else out


def refuse_tracked_out(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], targets: tuple[Any, ...] | list[Any]
) -> None:
    """Raise an error where a call with ``out=`` would have to be recorded."""
    if (any_tracked((args, tuple(kwargs.values()))) or any_tracked((targets,))) and (
        not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    ):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad"
        )


def copy_out(op: Op, args: tuple[Any, ...], result: Any, out: Any) -> Any:
    """Write what the parts of a call came to into the tensor `out`, by ops as those; return it."""
    if not (op.pointwise or op.elementwise):
        check_own_dtype(op, out._key.dtype, result._key.dtype, first_tensor(args))
    check_out(op.name, out, result._key.dtype, result._key)
    if out._shape != result._shape:
        resize_out(op, out, result._shape)
    return out.copy_(result)


def _of_target(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any
) -> dict[str, Any]:
    """Return the keywords with which a factory makes what ``out=`` holds; others must not contradict."""
    own = target._key
    asked = kwargs.get("dtype")
    if asked is not None and as_dtype(asked) is not own.dtype:
        raise RuntimeError(
            f"{op.name}(): dtype {as_dtype(asked).name} does not match dtype of out parameter "
            f"({own.dtype.name})"
        )
    layout = kwargs.get("layout")
    if layout is not None and layout is not target.layout:
        raise RuntimeError(
            f"{op.name}(): layout {layout} does not match layout of out parameter ({target.layout})"
        )
    given = {"dtype": own.dtype, "device": own.device}
    for name in op.names[: len(args)]:
        given.pop(name, None)
    return given | {name: value for name, value in kwargs.items() if value is not None}


def resize_out(op: Op, target: Any, shape: Shape) -> None:
    """Give an ``out=`` tensor of another shape new memory, as torch does."""
    if op not in SILENT:
        warn_of_resize(op.name, target, shape, 6)
    key = target._key
    target._array = key.runtime.empty(shape, key.dtype, key.device.index or 0)
    target._shape = shape
    target._storage = None


def warn_of_resize(name: str, target: Any, shape: Shape, level: int = 4) -> None:
    """Warn where an ``out=`` tensor of another shape has elements: its old memory is left behind."""
    import warnings

    if target._shape != shape and math.prod(target._shape):
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(target._shape)}, "
            f"which does not match the required output shape {list(shape)} of {name}(). This behavior is "
            "deprecated; pass an empty tensor, or one of that shape",
            UserWarning,
            stacklevel=level,
        )
