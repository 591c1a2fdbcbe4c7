"""Runs of composites that have a kernel or a derivative of their own: by the kernel, or decomposed."""

from __future__ import annotations

from typing import Any

from ..device.dtypes import COMPLEX, FLOATING
from ..device.meta import lay_out
from ..tensor.base import TRACKED, TensorBase, bump_version
from . import contracts
from .arguments import plain_arguments
from .composite_results import output_of, wrapped
from .execution import call_kernel, kernel_of, native_kernel, note_together, overlaps, unwrap
from .keys import DispatchKey, made_key
from .op import Delegated, Op, first_tensor
from .released_views import released
from .state import dispatch_state


def run_overridden(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite that a kernel or a derivative may stand in for."""
    if type(op.index) is not int:
        op.index.__index__()  # loads the extension that registers the op
    args, kwargs = plain_arguments(op, args, kwargs)
    return run_canonical(op, op.arguments(args, kwargs), args, kwargs)


def run_decomposition(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composite by its rule, if it has one, and its decomposition."""
    args, kwargs = plain_arguments(op, args, kwargs)
    values: Any = None if op.canonical is None else op.arguments(args, kwargs)
    if type(values) is Delegated:
        return released(values.result, args, kwargs)
    return decomposed(op, values, args, kwargs)


def run_canonical(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a composite with canonical arguments, or return what its rule delegated the call to."""
    if type(values) is Delegated:
        return released(values.result, args, kwargs)
    first = first_tensor(values)
    key = made_key(values) if first is None else first._key
    if key is None:
        return decomposed(op, values, args, kwargs)
    served = not key.is_meta and native_kernel(op, key) and of_one_key(values, key, op.mixed)
    tracked = (
        not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    ) and any_tracked(values)
    if not tracked or not (op.outputs or op.writes):  # of a plain value there is nothing to record
        if served:
            return _run_kernel(op, values, key)
        return decomposed(op, values, args, kwargs)
    # A kernel of an op without a derivative is differentiated through the decomposition, which must not
    # draw other numbers then, nor write.
    if op.derivative is None and not (served and not op.writes and not op.random):
        return decomposed(op, values, args, kwargs)
    with dispatch_state.gradient_off():
        if served:
            results = _run_kernel(op, values, key)
        else:
            results = decomposed(op, values, args, kwargs)
    record(op, values, tuple(results) if isinstance(results, tuple) else (results,))
    return results


def record(op: Op, values: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Record a call of an op with a derivative, by its canonical arguments."""
    dispatch_state.gradient.record(op, values, outputs)
    if dispatch_state.planning and op.derivative is not None:
        note_together(op, values, outputs)


def decomposed(op: Op, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a composite's body makes of its canonical arguments, or of those given without a rule."""
    if op.canonical is None:
        args, kwargs = plain_arguments(op, args, kwargs)
        made = released(op.function(*args, **kwargs), args, kwargs)
    else:
        made = released(op.decompose(values), args, kwargs)
    if op.elementwise and isinstance(made, TensorBase) and made._key.is_meta:
        # As a kernel would, whatever the steps of the body.
        lay_out(made, args if values is None else values)
    return made


def _run_kernel(op: Op, values: tuple[Any, ...], key: DispatchKey) -> Any:
    if op.writes:
        return _run_writing(op, values, key)
    raw, _ = unwrap(op, values, key)
    if op.updates:
        with key.runtime.quiet():  # once: what is written half cannot be tried again
            results = kernel_of(op, key)(*raw)
        for index in op.updates:
            if values[index] is not None:
                bump_version(values[index])
    else:
        results = call_kernel(op, key, raw)
    if dispatch_state.verify:
        _verify_composite(op, key, results, values)
    if not op.outputs:
        return results
    if len(op.outputs) == 1 and not isinstance(results, (tuple, list)):
        return output_of(key, results)
    return wrapped(op, key, results)


def _verify_composite(op: Op, key: DispatchKey, results: Any, values: tuple[Any, ...]) -> None:
    dispatch_state.verify = contracts.every_call
    contracts.check_composite(op, key, results, values)


def _run_writing(op: Op, values: tuple[Any, ...], key: DispatchKey) -> None:
    """Call the kernel of a composite that changes its arguments."""
    targets: list[Any] = []
    for index in op.writes:
        value = values[index]
        targets += value if isinstance(value, (list, tuple)) else [value]
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    for target in targets:
        if not target._state and target._storage is None and target._extra is None:
            pass  # nothing is recorded of it
        elif recorded or (target._extra is not None and target._extra.inference):
            dispatch_state.gradient.before_inplace(op, target, ())
        if overlaps(target):
            raise RuntimeError(
                f"{op.name}(): more than one element of a written-to tensor of shape "
                f"{list(target._shape)} refers to a single memory location; clone() it first"
            )
    raw, _ = unwrap(op, values, key)
    with key.runtime.quiet():  # once: what is written half cannot be tried again
        kernel_of(op, key)(*raw)
    for target in targets:
        bump_version(target)


def any_tracked(values: tuple[Any, ...]) -> bool:
    """Return whether any tensor among values and lists of values requires grad."""
    for value in values:
        if isinstance(value, TensorBase):
            # A view has to ask: it requires grad if its base has come to by now.
            state = value._state
            if state and (state == TRACKED or dispatch_state.gradient.requires_grad(value)):
                return True
        elif isinstance(value, (list, tuple)) and any_tracked(tuple(value)):
            return True
    return False


def of_one_key(values: tuple[Any, ...], key: DispatchKey, mixed: bool) -> bool:
    """Return whether all tensors are of one device, and, unless `mixed`, all floats of one dtype.

    A complex number beside real tensors is of another dtype, too.
    """
    for value in values:
        if isinstance(value, TensorBase):
            other = value._key
            if other is not key and (
                other.device is not key.device or (not mixed and other.dtype.category >= FLOATING)
            ):
                return False
        elif isinstance(value, (list, tuple)):
            if not of_one_key(tuple(value), key, mixed):
                return False
        elif type(value) is complex and key.dtype.category < COMPLEX:
            return False
    return True
