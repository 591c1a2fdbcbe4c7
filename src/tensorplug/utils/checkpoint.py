"""Checkpointing: a part of a model is computed again in backward, instead of keeping what it saved.

Two ways. Without reentrance (recommended) the part is recorded as usual, but what its nodes save is
replaced by a promise; the first one that backward asks for has the part run again, and what that run
saves fulfils all of them. With reentrance the part is one node, whose backward runs the part and then
a backward of its own.

Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tensorplug.amp.autocast_mode import saved_autocast
from tensorplug.autograd import Function, backward, enable_grad, is_grad_enabled
from tensorplug.autograd.engine.backward_callbacks import queue_callback, running
from tensorplug.autograd.graph.hooks import saved_tensors_hooks
from tensorplug.autograd.graph.nodes import FREED
from tensorplug.autograd.transforms.pytree import tree_flatten, tree_unflatten
from tensorplug.core import Tensor
from tensorplug.core.contexts import Block, Context, Steps, declare, thread
from tensorplug.core.device import generator
from tensorplug.core.device.device import Device
from tensorplug.core.dispatch.layers import recording

from .selective_checkpoint import (
    SAC_IGNORED_OPS,  # noqa: F401
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """The second run saved other tensors than the first one."""


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two contexts that do nothing: the default of ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs cut off from their graph, requiring grad where they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: ",
            type(inputs).__name__,
        )
    return tuple(
        [x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs]
    )


# --- settings ---------------------------------------------------------------------------------

declare(checkpoint_debug=None, checkpoint_early_stop=True)


class _Setting(Context):
    def __init__(self, **setting: bool | None) -> None:
        self._setting = setting

    def _changes(self) -> dict[str, Any]:
        return dict(self._setting)


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Let checkpoints made within a ``with`` block stop their second run once all is found, or not.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = tp.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: x.exp(), x, use_reentrant=False)
    """
    return _Setting(checkpoint_early_stop=enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Have all checkpoints in a ``with`` block say what was saved in errors, or not; None: as each is set."""
    return _Setting(checkpoint_debug=enabled)


# --- states that the second run starts from ---------------------------------------------------


class _RandomStates:
    """Where all default generators stood."""

    def __init__(self) -> None:
        self.states = [generator.going_on(known) for known in generator._defaults.values()]

    def restored(self) -> Block:
        """Have the generators go on from there within a ``with`` block."""

        def steps() -> tuple[Steps, Steps]:
            now = [generator.going_on(known) for known in generator._defaults.values()]
            return self.states, now

        return Block(steps)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the devices beside the host on which tensors are, and where their random numbers stand.

    Parameters
    ----------
    *args
        Tensors, and containers of them.

    Examples
    --------
    >>> import tensorplug as tp
    >>> get_device_states(tp.ones(2))
    ([], [])
    """
    devices = {
        leaf.device: generator.generator_of(leaf.device)
        for leaf in tree_flatten(args)[0]
        if isinstance(leaf, Tensor) and leaf.device.index is not None
    }
    return [device.index or 0 for device in devices], [
        found.get_state() for found in devices.values()
    ]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Have the random numbers of devices go on where :func:`get_device_states` found them.

    Parameters
    ----------
    devices : sequence of int
        Their indices.
    states : sequence of Tensor
        Where each stood.
    device_type : str, optional
        By default the device type beside the CPU.
    """
    if not devices:
        return
    kind = device_type
    if kind is None:
        found = importlib.import_module("tensorplug.accelerator").current_accelerator()
        if found is None:
            raise RuntimeError("set_device_states(): there is no device beside the CPU")
        kind = str(found.type)
    for index, state in zip(devices, states, strict=True):
        generator.generator_of(Device(kind, index)).set_state(state)


# --- without reentrance -----------------------------------------------------------------------


class _Stop(BaseException):
    """Everything was found: the second run, which may catch exceptions, needs to go no further."""


class _Promise:
    """Stands for a saved tensor until backward asks for it."""

    __slots__ = ("__weakref__", "place")

    def __init__(self, index: int) -> None:
        self.place = index


class _Hooks(saved_tensors_hooks):
    """Hooks of a part of the program that is computed again; its number tells captured graphs."""

    is_opaque = False
    _numbers = itertools.count(1)

    def _changes(self) -> dict[str, Any]:
        # What is in another checkpoint is computed again with that.
        return super()._changes() | {"recomputed": thread.recomputed or next(self._numbers)}


class _Frame:
    """One checkpointed call: what its first run promised, and what the second one found."""

    def __init__(self, rerun: Callable[[], Any], early_stop: bool, check: str, debug: bool) -> None:
        self.rerun = rerun
        self.early_stop = early_stop
        self.check = check
        self.debug = debug
        # Whether the first run is over: a gradient may be asked for within it.
        self.complete = False
        self.promises: list[weakref.ref[_Promise]] = []
        self.metadata: list[dict[str, Any]] = []
        self.found: weakref.WeakKeyDictionary[_Promise, Any] = weakref.WeakKeyDictionary()

    def pack(self, tensor: Any) -> _Promise:
        """Return the promise of a tensor that a node saves in the first run."""
        promise = _Promise(len(self.promises))
        self.promises.append(weakref.ref(promise))
        self.metadata.append(_metadata(tensor))
        return promise

    def unpack(self, promise: _Promise) -> Any:
        """Return the tensor, running the part again if need be."""
        if promise not in self.found:
            self.recompute()
        try:
            tensor = self.found[promise]
        except KeyError:
            raise RuntimeError(FREED) from None
        if running.current is None:  # somebody looked at a node
            self.found.clear()
        return tensor

    def recompute(self) -> None:
        """Run the part again and keep what its nodes save, for the backward pass that asks for it."""
        if running.current is not None:
            queue_callback(self.found.clear)
        count = 0
        wanted = len(self.promises)
        seen: list[dict[str, Any]] = []

        def pack(tensor: Any) -> Any:
            nonlocal count
            if count < wanted:
                promise = self.promises[count]()
                if promise is not None:
                    self.found[promise] = tensor
            seen.append(_metadata(tensor))
            count += 1
            if self.early_stop and count == wanted:
                raise _Stop
            return tensor

        def unpack(tensor: Any) -> Any:
            return tensor

        with contextlib.suppress(_Stop), saved_tensors_hooks(pack, unpack), enable_grad():
            self.rerun()
        self.compare(seen, wanted)

    def compare(self, seen: list[dict[str, Any]], wanted: int) -> None:
        """Raise CheckpointError if the second run saved other tensors than the first, so far as that got."""
        count = len(seen)
        detail = ""
        if self.debug:
            detail = "\n\nSaved by the first run:\n" + "\n".join(map(str, self.metadata))
            detail += "\n\nSaved by the second run:\n" + "\n".join(map(str, seen))
        if count < wanted or (count > wanted and self.complete):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {wanted}\nNumber of tensors "
                f"saved during recomputation: {count}.{detail}"
            )
        if self.check == "none":
            return
        different = [
            f"tensor at position {index}:\nsaved metadata: {first}\nrecomputed metadata: {second}"
            for index, (first, second) in enumerate(zip(self.metadata[:wanted], seen, strict=False))
            if first != second
        ]
        if different:
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{chr(10).join(different)}{detail}"
            )


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _kept(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that gives the arguments back.

    Within another checkpoint that one keeps the tensors among them, or rather computes them again.
    """
    if not thread.saved_hooks:
        return _giving((args, kwargs))
    pack, unpack = thread.saved_hooks[-1]
    leaves, spec = tree_flatten((args, kwargs))
    kept = [
        (pack(leaf.detach()), leaf.requires_grad) if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    ]
    tensors = [isinstance(leaf, Tensor) for leaf in leaves]
    del leaves, args, kwargs

    def arguments() -> Any:
        again = [
            unpack(item[0]).detach().requires_grad_(item[1]) if is_tensor else item
            for item, is_tensor in zip(kept, tensors, strict=True)
        ]
        return tree_unflatten(again, spec)

    return arguments


def _metadata(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _without_reentrance(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: Contexts,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    states = _RandomStates() if preserve_rng_state else None
    autocast = saved_autocast()
    seen = [layer.stand_in() for layer in thread.stack]
    stand_in = next((layer for layer in seen if layer is not None), None)
    arguments = _kept(args, kwargs)

    def rerun() -> None:
        given, named = arguments()
        restored = contextlib.nullcontext() if states is None else states.restored()
        alike = contextlib.nullcontext() if stand_in is None else stand_in.active()
        with restored, alike, autocast(), recompute_context:
            function(*given, **named)

    chosen = thread.checkpoint_debug
    frame = _Frame(
        rerun,
        early_stop and bool(thread.checkpoint_early_stop),
        determinism_check,
        debug if chosen is None else chosen,
    )
    known = context_fn is noop_context_fn and preserve_rng_state
    hooks = _Hooks if known else saved_tensors_hooks
    with hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


# --- with reentrance --------------------------------------------------------------------------


class CheckpointFunction(Function):
    """The one node that stands for a checkpointed call with reentrance."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the part without recording."""
        ctx.run_function = run_function
        ctx.states = _RandomStates() if preserve_rng_state else None
        ctx.autocast = saved_autocast()
        ctx.inputs = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Run the part while recording, then backward through it."""
        if running.targets:
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        restored = contextlib.nullcontext() if ctx.states is None else ctx.states.restored()
        with restored, enable_grad(), ctx.autocast():
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (out, gradient)
            for out, gradient in zip(outputs, gradients, strict=True)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        with enable_grad():
            backward([out for out, _ in pairs], [gradient for _, gradient in pairs])
        return (
            None,
            None,
            *[value.grad if isinstance(value, Tensor) else None for value in detached],
        )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function` without keeping what it saves; backward runs it again.

    Parameters
    ----------
    function : callable
        Deterministic, but for random numbers from the default generators.
    *args
        Its arguments.
    use_reentrant : bool
        Which of the two ways; False is the one that works with everything. Leaving it out warns.
    preserve_rng_state : bool
        Whether the second run draws the same random numbers; True by default.
    context_fn : callable
        Returns two context managers, for the first and the second run. Only without reentrance.
    determinism_check : {"default", "none"}
        Whether to compare shape, dtype and device of what the two runs save.
    debug : bool
        Whether an error lists what both runs saved.
    early_stop : bool
        Whether the second run stops once it has saved all that is needed.
    **kwargs
        Keyword arguments of the function; only without reentrance.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    CheckpointError
        In backward, if the second run saves other tensors than the first.
    ValueError
        If options are given that the chosen way does not have.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.utils.checkpoint import checkpoint
    >>> x = tp.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: (x * x * x).sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; without it, use_reentrant=True is assumed.",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    preserve = bool(kwargs.pop("preserve_rng_state", True))
    if not use_reentrant:
        return _without_reentrance(
            function, args, kwargs, preserve, context_fn, determinism_check, debug, early_stop
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    if recording.enabled and not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            UserWarning,
            stacklevel=2,
        )
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Iterable[Any],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions one after the other, in segments of which all but the last are checkpointed.

    Parameters
    ----------
    functions : Sequential or sequence of callables
        Each takes what the one before returns.
    segments : int
        How many segments of equal length.
    input : Tensor
        What the first function takes.
    use_reentrant, preserve_rng_state
        As for :func:`checkpoint`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.utils.checkpoint import checkpoint_sequential
    >>> x = tp.ones(2, requires_grad=True)
    >>> y = checkpoint_sequential([tp.exp, tp.log, tp.square], 2, x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.0000, 2.0000])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. use_reentrant=False is recommended; without it, use_reentrant=True is assumed.",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    children = getattr(functions, "children", None)
    parts: Sequence[Any] = list(functions if children is None else children())

    def run(part: Sequence[Any]) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for function in part:
                value = function(value)
            return value

        return forward

    size = len(parts) // segments
    end = 0
    for start in range(0, size * (segments - 1), size or 1):
        end = start + size
        input = checkpoint(
            run(parts[start:end]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return run(parts[end:])(input)
