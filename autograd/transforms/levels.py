"""Levels: the functional transforms active in a thread, and the layer through which ops reach them.

Two kinds. A batch level (``vmap``) sees :class:`~.vmap.BatchedTensor`, which hides a dimension of an
ordinary tensor; its rules call ops on the tensors behind. A forward level (``jvp``, ``dual_level``) sees
ordinary tensors that carry a tangent. Batch levels take their turn first, the innermost before the others;
so tangents are always on ordinary tensors, and the graph of reverse mode, below all levels, knows nothing of
either. Batching commutes with both kinds of differentiation, so this order gives what nesting asks for.

Rules deal with the canonical arguments of primitives, a :class:`~tensorplug.core.dispatch.op_registry.Spec`;
composites are taken apart, unless a level has a rule for the whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from tensorplug.core.contexts import Context, declare, thread
from tensorplug.core.dispatch import dispatcher, execution, layers
from tensorplug.core.dispatch.counts import count_layers
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.dispatch.op_registry import Delegated, Op, Spec
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.tensor import Tensor

from ..grad_mode import enable_grad
from ..graph import views

BATCHED, DUAL = 1, 2


class Level:
    """One transform at work; it knows the tensors that mean something to it only while it lasts."""

    def __init__(self) -> None:
        self.known: dict[int, weakref.ref[Any]] = {}

    def note(self, tensor: Any) -> None:
        """Keep a weak reference to a tensor, for :meth:`end`."""
        key = id(tensor)
        known = self.known

        def forget(_: Any) -> None:
            known.pop(key, None)

        known[key] = weakref.ref(tensor, forget)

    def live(self) -> list[Any]:
        """Return the tensors of the level that still exist."""
        found = [reference() for reference in list(self.known.values())]
        return [tensor for tensor in found if tensor is not None]

    def end(self) -> None:
        """Let go of all tensors."""
        self.known.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()


# The levels that a thread's ops meet, the outermost first; whether the thread runs a transformed function.
declare(batches=(), tangents=(), transformed=False)
state = thread


REQUIRES_GRAD_INSIDE = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
    "inside of a function being transformed by a functorch transform. This is unsupported, please use the "
    "transforms of func (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of the "
    "function being transformed instead."
)


class ActiveLevels(Context):
    """Has ops meet the given levels only, within a ``with`` block."""

    __slots__ = ("batches", "tangents")

    def __init__(self, batches: tuple[Any, ...], tangents: tuple[Any, ...]) -> None:
        self.batches = batches
        self.tangents = tangents

    def _changes(self) -> dict[str, Any]:
        counted = count_layers() if self.batches or self.tangents else {}
        return counted | meeting(self.batches, self.tangents)


def meeting(batches: tuple[Any, ...], tangents: tuple[Any, ...]) -> dict[str, Any]:
    """Return the state of a thread whose ops meet these levels."""
    stack = thread.stack
    active = TRANSFORMS in stack
    if (batches or tangents) and not active:
        stack = layers.with_layer(stack, TRANSFORMS)
    elif active and not (batches or tangents):
        stack = tuple([layer for layer in stack if layer is not TRANSFORMS])
    return {"batches": batches, "tangents": tangents, "stack": stack}


class _Entered(ActiveLevels):
    """Runs a function that is transformed by the innermost level."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {**super()._changes(), "transformed": True}


def entered(level: Level, *, batch: bool) -> ActiveLevels:
    """Have ops meet one more level, the innermost of its kind, within a ``with`` block."""
    if batch:
        return _Entered((*state.batches, level), state.tangents)
    return _Entered(state.batches, (*state.tangents, level))


class differentiated(enable_grad):
    """Records a function that is transformed by reverse mode."""

    def _changes(self) -> dict[str, Any]:
        return {**super()._changes(), "transformed": True}


def enter(level: Level) -> None:
    """Have this thread's ops meet one more level of forward mode from now on."""
    dispatch_state.count_layers(1)
    table = thread.__dict__
    table |= meeting(state.batches, (*state.tangents, level))


def leave(level: Level) -> None:
    """End a level of forward mode."""
    tangents = tuple([other for other in state.tangents if other is not level])
    table = thread.__dict__
    table |= meeting(state.batches, tangents)
    dispatch_state.count_layers(-1)
    level.end()


def touched(values: Any) -> int:
    """Return whether batched tensors (1) or tensors with tangents (2) are among nested values."""
    found = 0
    for value in values:
        if isinstance(value, Tensor):
            if value._batched:
                found |= BATCHED
            elif value._tangents or (
                value._view is not None and state.tangents and views.base_of(value._view)._tangents
            ):
                found |= DUAL
        elif isinstance(value, (list, tuple)) and value:
            found |= touched(value)
    return found


class _Transforms(Layer):
    """Takes calls of ops to the levels."""

    name = "functional transforms"
    order = 150

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        batches, tangents = state.batches, state.tangents
        found = touched(args) | (touched(kwargs.values()) if kwargs else 0)
        if found & BATCHED or (batches and op.random):
            with ActiveLevels(batches, tangents):
                return dispatch_state.call_batched(op, args, kwargs)
        if tangents and op.random:
            for level in tangents:
                level.before_random()
        if found and tangents:
            with ActiveLevels((), tangents):
                return dispatch_state.call_dual(op, args, kwargs)
        return proceed(*args, **kwargs)


TRANSFORMS = _Transforms()


def run_spec(op: Op, spec: Spec) -> Any:
    """Call a primitive with canonical arguments, by way of the levels that are at work."""
    if type(spec) is Delegated:
        return spec.result
    found = touched(spec.values)
    if found & BATCHED or (state.batches and op.random):
        return dispatch_state.spec_batched(op, spec)
    if found and state.tangents:
        return dispatch_state.spec_dual(op, spec)
    return _base(op, spec)


def _base(op: Op, spec: Spec) -> Any:
    """Call a primitive below all levels: what layers there are below see the call that it comes to."""
    stack = thread.stack
    below = tuple([layer for layer in stack if layer.order < TRANSFORMS.order])
    if not below:
        return execution.execute(op, spec)
    call = _call_of(op, spec)
    if call is not None:
        return dispatcher.enter_layers(below, len(below) - 1, op, *call)
    stand_in = Op(op.name)
    stand_in.kind = "composite"
    stand_in.parameters = op.parameters
    stand_in.owner = op.owner
    stand_in.function = lambda *_: execution.execute(op, spec)
    return dispatcher.enter_layers(below, len(below) - 1, stand_in, spec.values, {})


_Call = tuple[tuple[Any, ...], dict[str, Any]]


def _call_of(op: Op, spec: Spec) -> _Call | None:
    """Return the call of an op that comes to these canonical arguments, None if there is none."""
    for args, kwargs in ((spec.values, {}), _by_name(op, spec)):
        try:
            again = op.function(*args, **kwargs)
        except Exception:  # these are other arguments
            continue
        if (
            type(again) is Spec
            and again.outputs == spec.outputs
            and _alike(again.values, spec.values)
        ):
            return args, kwargs
    return None


def _by_name(op: Op, spec: Spec) -> _Call:
    """Return canonical arguments under the names of the op's own, as far as these are positional."""
    given = dict(zip(op.parameters, spec.values, strict=True))
    if "device" in op.names:
        given.setdefault("device", spec.key.device)
    args: list[Any] = []
    for name, parameter in op.signature.parameters.items():
        if name not in given or parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            break
        args.append(given.pop(name))
    return tuple(args), given


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        same = type(one) is type(other) and len(one) == len(other)
        return same and all(map(_alike, one, other))
    return one is other or (
        type(one) is type(other) and not isinstance(one, TensorBase) and repr(one) == repr(other)
    )


def leaf_for(source: Any) -> Any:
    """Return a leaf of the graph that stands for a tensor without gradient."""
    leaf = source.detach()
    layers.note_point(leaf, source)
    dispatch_state.gradient.set_requires_grad(leaf, True)
    return leaf


def without_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a write with a copy of the target: what a node saves must not be written to."""
    target = args[0]
    if not layers.recording.enabled or not any(
        [tensor.requires_grad for tensor in tensors_in((*args, *kwargs.values()))]
    ):
        return args
    content = target.clone()
    return tuple([content if arg is target else arg for arg in args])


def tensors_in(values: Any) -> Iterator[Any]:
    """Yield the tensors among nested values."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def map_tensors(values: Any, function: Callable[[Any], Any]) -> Any:
    """Return nested values with `function` applied to each tensor in them."""
    if isinstance(values, TensorBase):
        return function(values)
    if isinstance(values, (list, tuple)) and values:
        items = [map_tensors(value, function) for value in values]
        if hasattr(values, "_fields"):
            return type(values)(*items)
        return tuple(items) if isinstance(values, tuple) else items
    return values


def call_like(op: Op, values: tuple[Any, ...], spec: Spec, **changes: Any) -> Any:
    """Call a primitive like `spec`, with other values and perhaps another shape or other outputs."""
    outputs = changes.get("outputs")
    if outputs is None:
        shape, dtype = spec.outputs[0]
        outputs = ((changes.get("shape", shape), changes.get("dtype", dtype)),)
    made = Spec(values, outputs=outputs, key=spec.key.dtype, device=spec.key.device)
    return run_spec(op, made)
