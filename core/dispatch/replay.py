"""Replay: the body of a composite, traced once for calls that look the same, runs on raw arrays.

A body is a few ops, and between them tensors are made, arguments checked and calls looked up, which for
small tensors takes longer than the kernels. Where nothing is recorded and no layer looks on, the second call
of some keys, shapes and plain values is traced to a :class:`~.programs.Program`, and later ones run that. The
program goes through the kernel tables, so kernels that plugins bring for the inner ops serve here; it is
dropped when a plugin comes or goes. Where a body cannot be traced, or a program raises, the body runs as it
is.
"""

from __future__ import annotations

from typing import Any

from ..device.device import META, Device, default
from ..device.dtypes import DType
from ..device.meta import MetaArray
from ..tensor.base import TRACKED, TensorBase, new_tensor
from ..tensor.shapes import contiguous_strides
from .call_cache import CallCache
from .keys import DispatchKey, dispatch_key
from .op import Op
from .programs import Program, trace_body
from .state import dispatch_state

_KEPT = 256  # per op
_REFUSED = 32  # calls of an op in a row, after which no more are tried
_TRACE = 4  # as many of them as a trace that failed counts
_FAILED = 4  # of one program, after which it is dropped
_PLAIN = frozenset({int, bool, str, type(None), DType, Device})


class Replay:
    """What replays calls of some keys, shapes and plain values.

    Attributes
    ----------
    program : Program or None
        None where there is none: the call was seen once, or cannot be traced.
    refused : bool
        Whether it cannot be traced.
    failed : int
        How often the program raised.
    told : object
        What tells the program from others. A body is traced twice: one that draws numbers of its own, say,
        gives another one.
    key, shape : DispatchKey, tuple of int
        Of the result.
    keys, shapes : tuple
        The same of several results.
    container : type or None
        In what several results are returned.
    """

    __slots__ = (
        "container", "failed", "key", "keys", "program", "refused", "shape", "shapes", "told",
    )  # fmt: skip

    def __init__(self) -> None:
        self.program: Program | None = None
        self.refused = False
        self.failed = 0
        self.told: Any = None
        self.key: DispatchKey | None = None
        self.shape: Any = None
        self.keys: tuple[DispatchKey, ...] = ()
        self.shapes: tuple[Any, ...] = ()
        self.container: Any = None


def replayed(op: Op, cache: CallCache, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a composite's body returns, by a program; NotImplemented where there is none."""
    if (
        op.random
        or not op.pure
        or op.reads_layout
        or cache.refused >= _REFUSED
        or dispatch_state.verify
    ):
        return NotImplemented
    parts: list[Any] = []
    tensors: list[Any] = []
    recorded = not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    if not _collect(args, parts, tensors, recorded):
        return NotImplemented
    if kwargs:
        for name, value in kwargs.items():
            parts.append(name)
            if not _collect((value,), parts, tensors, recorded):
                return NotImplemented
    if not tensors:
        parts.append(default.device)
    key = tuple(parts)
    replay: Replay | None = cache.replays.get(key)
    if replay is None:
        if len(cache.replays) >= _KEPT:
            cache.replays.clear()
        cache.replays[key] = Replay()
        return NotImplemented
    if replay.refused:
        cache.refused += 1
        return NotImplemented
    program = replay.program
    if program is None:
        program = _traced(op, cache, replay, args, kwargs, tensors)
        if program is None:
            return NotImplemented
    arrays: list[Any] = []
    for tensor in tensors:
        array = tensor._array
        # Where a size is 1 strides tell more than whether an array is contiguous.
        if program.reads_layout and tuple(tensor._key.runtime.strides(array)) != contiguous_strides(
            tensor._shape
        ):
            return NotImplemented
        arrays.append(array)
    try:
        found = program.run(arrays)
    except Exception:  # the body knows what to say
        replay.failed += 1
        replay.refused = replay.failed >= _FAILED
        return NotImplemented
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


def _collect(values: Any, parts: list[Any], tensors: list[Any], recorded: bool) -> bool:
    """Add what a program depends on to a cache key, and the tensors to a list; return whether that is all."""
    for value in values:
        if isinstance(value, TensorBase):
            tensor = value
            if (
                recorded
                and tensor._state
                and (tensor._state == TRACKED or dispatch_state.gradient.requires_grad(tensor))
            ):
                return False
            parts.append(tensor._key)
            parts.append(tensor._shape)
            tensors.append(tensor)
            continue
        kind = type(value)
        parts.append(kind)
        if kind is tuple or kind is list:
            parts.append(len(value))
            if not _collect(value, parts, tensors, recorded):
                return False
        elif kind in _PLAIN:
            parts.append(value)
        elif kind is float:
            if value != value:
                return False
            parts.append(value or repr(value))  # -0.0 is equal to 0.0
        else:
            return False
    return True


def _output(array: Any, key: DispatchKey, shape: Any) -> Any:
    """Return the tensor of an array, or NotImplemented if it has not the shape that was traced."""
    if type(array) is not key.array_type:
        array = key.as_array(array)
    if tuple(array.shape) != shape:
        return NotImplemented
    output = new_tensor(array, key, shape)
    if dispatch_state.grad_disabled:
        dispatch_state.gradient.mark_if_inference(output)
    return output


def _traced(
    op: Op, cache: CallCache, replay: Replay, args: Any, kwargs: dict[str, Any], tensors: list[Any]
) -> Program | None:
    """Trace the call into `replay`, or note that it cannot be."""
    replay.refused = True  # until it is traced
    asked = kwargs.get("device")
    if isinstance(asked, str):
        kwargs = {**kwargs, "device": Device(asked)}
    device: Device = tensors[0]._key.device if tensors else kwargs.get("device") or default.device
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
        program, told, result = trace_body(lambda: op.call(*given, **named), inputs, device)
    except Exception:
        cache.refused += _TRACE
        return None
    finally:
        default.device = before
    if replay.told is None:
        replay.told = told
        replay.refused = False
        return None
    if replay.told != told:
        cache.refused += _TRACE
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
