"""Replay: the body of a composite, traced once for calls that look the same, runs on raw arrays.

A body is a few ops, and between them tensors are made, arguments checked and calls looked up, which for
small tensors takes longer than the kernels. Where no layer looks on, the second call of some keys, shapes and
plain values is traced to a :class:`~.programs.Program`, and later ones run that. The program goes through the
kernel tables, so kernels that plugins bring for the inner ops serve here; it is dropped when a plugin comes
or goes. Where a body cannot be traced, or a program raises, the body runs as it is.

A call that is recorded becomes one node, with a program of the gradients (:mod:`.recorded_bodies`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..contexts import thread
from ..device.device import META, Device, default
from ..device.meta import MetaArray
from ..tensor.base import TRACKED, TensorBase, new_tensor
from ..tensor.shapes import contiguous_strides
from .arguments import CONSTANTS, has_number
from .call_cache import CallCache
from .composite_runs import any_tracked
from .keys import DispatchKey, dispatch_key
from .op import Op
from .programs import Program, trace_body
from .recorded_bodies import TENSOR, RecordedBody, replaced, trace_recorded
from .state import dispatch_state

_KEPT = 256  # per op
_REFUSED = 32  # calls of an op in a row, after which no more are tried
_TRACE = 4  # as many of them as a trace that failed counts
_FAILED = 4  # of one program, after which it is dropped
_SEEN = 3  # recorded calls before one is traced: that takes milliseconds
_LARGEST = 1 << 14  # elements of a tensor in a recorded call: its node keeps all arguments


class Replay:
    """What replays calls of some keys, shapes and plain values.

    Attributes
    ----------
    program : Program or None
        None where there is none: the call was seen once, or cannot be traced.
    refused : bool
        Whether it cannot be traced.
    failed, seen : int
        How often the program raised, and, until there is one, how often such a call was recorded.
    told : object
        What tells the program from others. A body is traced twice: one that draws numbers of its own, say,
        gives another one.
    key, shape : DispatchKey, tuple of int
        Of the result.
    keys, shapes : tuple
        The same of several results.
    container : type or None
        In what several results are returned.
    recorded : RecordedBody or None
        Of calls that are recorded: how.
    parts : tuple
        What it depends on: the key under which it is kept.
    tracked : bool
        Whether a tensor among them requires grad.
    following : Replay or None
        What served the op's next call when it was another one: programs repeat their calls in turn.
    """

    __slots__ = (
        "container", "failed", "following", "key", "keys", "parts", "program", "recorded", "refused",
        "seen", "shape", "shapes", "told", "tracked",
    )  # fmt: skip

    def __init__(self, parts: tuple[Any, ...], tracked: bool) -> None:
        self.parts = parts
        self.tracked = tracked
        self.following: Replay | None = None
        self.program: Program | None = None
        self.refused = False
        self.failed = 0
        self.seen = 0
        self.recorded: RecordedBody | None = None
        self.told: Any = None
        self.key: DispatchKey | None = None
        self.shape: Any = None
        self.keys: tuple[DispatchKey, ...] = ()
        self.shapes: tuple[Any, ...] = ()
        self.container: Any = None


def replayed(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a composite's body returns, by a program; NotImplemented where there is none."""
    if op.random or not op.pure or op.reads_layout or dispatch_state.verify:
        return NotImplemented
    if cache.refused >= _REFUSED:  # what cannot be traced cannot be with gradients, either
        return NotImplemented
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    latest: Replay | None = cache.replayed
    replay: Any = latest
    tensors: list[Any] = []
    if replay is not None and not _is_of(replay, args, kwargs, tensors, recorded):
        replay = replay.following
        tensors = []
        if replay is not None and not _is_of(replay, args, kwargs, tensors, recorded):
            replay = None
    if replay is None:
        if has_number(op, args, kwargs):  # is read anew each time
            return NotImplemented
        tensors = []
        parts: list[Any] = []
        found_tracked = _collect(args, parts, tensors, recorded)
        if found_tracked < 0:
            return NotImplemented
        if kwargs:
            for name, value in kwargs.items():
                parts.append(name)
                found_named = _collect((value,), parts, tensors, recorded)
                if found_named < 0:
                    return NotImplemented
                found_tracked |= found_named
        if not tensors:
            parts.append(default.device)
        key = tuple(parts)
        replay = cache.replays.get(key)
        if replay is None:
            if len(cache.replays) >= _KEPT:
                cache.replays.clear()
            cache.replays[key] = Replay(key, found_tracked > 0)
            return NotImplemented
    if replay is not latest:
        if latest is not None:
            latest.following = replay
        cache.replayed = replay
    tracked = replay.tracked
    if tracked:
        if cache.unrecorded >= _REFUSED:
            return NotImplemented
        # A mode that makes a call it was handed looks for the parts in the backward pass.
        if dispatch_state.gradient.watched or (dispatch_state.layers_active and thread.layered):
            return NotImplemented
        for tensor in tensors:
            if tensor._extra is not None and tensor._extra.inference:
                return NotImplemented
    if replay.refused:
        _refuse(cache, tracked, 1)
        return NotImplemented
    program = replay.program
    if program is None:
        if tracked:
            replay.seen += 1
            if replay.seen < _SEEN:
                return NotImplemented
        program = _traced(op, cache, replay, args, kwargs, tensors, tracked)
        if program is None:
            return NotImplemented
    arrays: list[Any] = []
    for tensor in tensors:
        array = tensor._array
        if program.reads_layout:
            runtime = tensor._key.runtime
            shape = tensor._shape
            # Where a size is 1 strides tell more than whether an array is contiguous.
            if not runtime.is_contiguous(array) or (
                1 in shape and tuple(runtime.strides(array)) != contiguous_strides(shape)
            ):
                return NotImplemented
        arrays.append(array)
    try:
        if tracked:
            arrays.append(None)  # in place of the gradient
        found = program.run(arrays)
    except Exception:  # the body knows what to say
        replay.failed += 1
        replay.refused = replay.failed >= _FAILED
        return NotImplemented
    if tracked:
        assert replay.key is not None
        cache.unrecorded = 0
        output = _output(found[0], replay.key, replay.shape)
        if output is not NotImplemented:
            dispatch_state.gradient.record_body(replay.recorded, tensors, output, found)
        return output
    cache.refused = 0
    if replay.key is not None:
        return _output(found, replay.key, replay.shape)
    outputs: list[Any] = []
    for number, array in enumerate(found):
        output = _output(array, replay.keys[number], replay.shapes[number])
        if output is NotImplemented:
            return output
        outputs.append(output)
    container = replay.container
    if container is list:
        return outputs
    return tuple(outputs) if container is tuple else container(*outputs)


def replayed_unrecorded(
    op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do what :func:`replayed` does for calls that are not recorded: a conversion is a node of its own."""
    if (not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()) and any_tracked(
        (*args, *kwargs.values()) if kwargs else args
    ):
        return NotImplemented
    return replayed(op, cache, args, kwargs)


def _refuse(cache: CallCache, tracked: bool, calls: int) -> None:
    if tracked:
        cache.unrecorded += calls
    else:
        cache.refused += calls


def _is_of(
    replay: Replay,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[Any],
    recorded: bool,
) -> bool:
    """Return whether a call is like the one that a replay is of; add its tensors to a list.

    It tells the same as a key of what :func:`_collect` finds, which takes longer to make and to look up.
    """
    parts = replay.parts
    position = _passed(args, parts, 0, tensors, recorded)
    if position < 0:
        return False
    if kwargs:
        for name, value in kwargs.items():
            if position >= len(parts) or parts[position] != name:
                return False
            position = _passed((value,), parts, position + 1, tensors, recorded)
            if position < 0:
                return False
    if not tensors:
        return position + 1 == len(parts) and bool(parts[position] == default.device)
    return position == len(parts)


def _passed(
    values: Any, parts: tuple[Any, ...], position: int, tensors: list[Any], recorded: bool
) -> int:
    """Return the position behind the parts that are those of some values; -1 if others are there."""
    end = len(parts)
    for value in values:
        if position >= end:
            return -1
        if isinstance(value, TensorBase):
            tensor = value
            if (
                recorded
                and tensor._state
                and (tensor._state == TRACKED or dispatch_state.gradient.requires_grad(tensor))
            ):
                if parts[position] != TRACKED:
                    return -1
                position += 1
            if position + 2 > end or parts[position] is not tensor._key:
                return -1
            shape = tensor._shape
            planned = parts[position + 1]
            if planned is not shape and planned != shape:
                return -1
            position += 2
            tensors.append(tensor)
            continue
        kind = type(value)
        if parts[position] is not kind or position + 2 > end:
            return -1
        planned = parts[position + 1]
        position += 2
        if kind is tuple or kind is list:
            if planned != len(value):
                return -1
            position = _passed(value, parts, position, tensors, recorded)
            if position < 0:
                return -1
        elif kind is float:
            if planned != (value or repr(value)):
                return -1
        elif kind is complex:
            if planned != (value if value.real and value.imag else repr(value)):
                return -1
        elif planned is not value and planned != value:
            return -1
    return position


def _collect(values: Any, parts: list[Any], tensors: list[Any], recorded: bool) -> int:
    """Add what a program depends on to a cache key, and the tensors to a list.

    Returns 1 if one of them requires grad, 0 if none does, -1 if that is not all that counts.
    """
    tracked = 0
    for value in values:
        if isinstance(value, TensorBase):
            tensor = value
            if (
                recorded
                and tensor._state
                and (tensor._state == TRACKED or dispatch_state.gradient.requires_grad(tensor))
            ):
                tracked = 1
                parts.append(TRACKED)
            if tensor._key.is_meta or tensor._key.intercepts:  # there is no kernel to replay
                return -1
            parts.append(tensor._key)
            parts.append(tensor._shape)
            tensors.append(tensor)
            continue
        kind = type(value)
        parts.append(kind)
        if kind is tuple or kind is list:
            parts.append(len(value))
            found = _collect(value, parts, tensors, recorded)
            if found < 0:
                return -1
            tracked |= found
        elif kind in CONSTANTS:
            parts.append(value)
        elif kind is float:
            if value != value:
                return -1
            parts.append(value or repr(value))  # -0.0 is equal to 0.0
        elif kind is complex:
            if value != value:
                return -1
            parts.append(value if value.real and value.imag else repr(value))
        else:
            return -1
    return tracked


def _output(array: Any, key: DispatchKey, shape: Any) -> Any:
    """Return the tensor of an array, or NotImplemented if it has not the shape that was traced."""
    if type(array) is not key.array_type:
        array = key.as_array(array)
    if tuple(array.shape) != shape:
        return NotImplemented
    output = new_tensor(array, key, shape)
    if dispatch_state.inference:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _traced(
    op: Op,
    cache: CallCache,
    replay: Replay,
    args: Any,
    kwargs: dict[str, Any],
    tensors: list[Any],
    tracked: bool,
) -> Program | None:
    """Trace the call into `replay`, or note that it cannot be."""
    replay.refused = True  # until it is traced
    if tracked and max([math.prod(tensor._shape) for tensor in tensors]) > _LARGEST:
        return None
    if isinstance(kwargs.get("device"), str):
        kwargs = {**kwargs, "device": Device(kwargs["device"])}
    asked = [value for value in (*args, *kwargs.values()) if isinstance(value, Device)]
    device: Device = tensors[0]._key.device if tensors else asked[0] if asked else default.device
    if device is META:
        return None
    for tensor in tensors:
        key = tensor._key
        if key.device is not device or dispatch_key(device, key.dtype) is not key:
            return None
    inputs: list[Any] = []

    def probe(value: Any) -> Any:
        if isinstance(value, TensorBase):
            dtype = value._key.dtype
            made = new_tensor(
                MetaArray(value._shape, dtype), dispatch_key(META, dtype), value._shape
            )
            if tracked and value._state and dispatch_state.gradient.requires_grad(value):
                made._state = TRACKED
            inputs.append(made)  # in the order of _collect
            return made
        if isinstance(value, (list, tuple)):
            kind: Any = type(value)
            return kind([probe(item) for item in value])
        return META if isinstance(value, Device) and value == device else value

    given = probe(args)
    named = {name: probe(value) for name, value in kwargs.items()}
    before = default.device
    try:
        default.device = META
        body = partial(op.call, *given, **named)
        if tracked:
            differentiate = partial(dispatch_state.gradient.differentiate, inputs)
            replay.recorded, told, result = trace_recorded(body, inputs, device, differentiate)
            replay.recorded.call = op, *replaced((args, kwargs), lambda _: TENSOR)
            program = replay.recorded.forward
        else:
            program, told, result = trace_body(body, inputs, device)
    except Exception:
        _refuse(cache, tracked, _TRACE)
        return None
    finally:
        default.device = before
    if replay.told is None:
        replay.told = told
        replay.refused = False
        return None
    if replay.told != told:
        _refuse(cache, tracked, _TRACE)
        return None
    if isinstance(result, TensorBase):
        replay.key = dispatch_key(device, result._key.dtype)
        replay.shape = result._shape
    else:
        replay.keys = tuple([dispatch_key(device, one._key.dtype) for one in result])
        replay.shapes = tuple([one._shape for one in result])
        replay.container = type(result)
    replay.program = program
    replay.refused = False
    return program
