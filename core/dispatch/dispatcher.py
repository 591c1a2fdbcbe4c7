"""The dispatcher: from an op and its arguments to a kernel and back to tensors.

:mod:`.fast_path` is the hot path: pointwise ops whose arguments need neither conversion nor checks.
:mod:`.calls` caches the specs of ops. Everything else goes through :func:`general`: the declared rule
makes a :class:`~tensorplug.core.dispatch.op.Spec`, :func:`.execution.execute` calls the kernel with it.

What sees calls (autograd, autocast, tracing, profiling) is a layer, see :mod:`.layers`. The
gradient layer is reached directly where an input requires grad; any other makes ``layers_active`` nonzero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..contexts import thread
from ..tensor.base import TensorBase
from . import out_variants, writes
from .arguments import Foreign, plain_arguments
from .composite_runs import run_decomposition, run_overridden
from .counts import settle
from .failed_calls import explained
from .interception import Intercepted, intercept
from .op import Op
from .overrides import taken_over
from .released_views import executed
from .replay import replayed_unrecorded
from .state import dispatch_state
from .torch_dispatch import dispatchers, hand_over

if TYPE_CHECKING:
    from .layers import Layer


def general(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op with any arguments."""
    if dispatch_state.layers_active:
        return through_layers(op, args, kwargs)
    try:
        if op.pointwise and not op.checked and len(kwargs) == 1 and "out" in kwargs:
            out = kwargs["out"]
            if isinstance(out, TensorBase) and args and writes.written(op, out, args):
                return out
        args, kwargs = plain_arguments(op, args, kwargs)
        return run(op, args, kwargs)
    except Exception as error:
        made = rescued(op, args, kwargs, error)
        if made is None:
            raise
        return made[0]


def promoted(op: Op, input: Any, other: Any) -> Any:
    """Call a pointwise op of two tensors of different keys, one of which has to be converted."""
    if op.promotions is not None and not dispatch_state.layers_active:
        replay = replayed_unrecorded(op, op.promotions, (input, other), {})
        if replay is not NotImplemented:
            return replay
    return general(op, (input, other), {})


def rescued(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> tuple[Any] | None:
    """End a call that failed: return the result, in a tuple, if an argument makes the call itself.

    Else raise an error that tells of the op, or return None: the one that there is tells enough.
    """
    if isinstance(error, Foreign):
        return (through_layers(op, args, kwargs),)
    if isinstance(error, Intercepted):
        return (intercept(op, args, kwargs),)
    told = explained(op, op.name, args, kwargs, error)
    if told is None:
        return None
    raise told from told.__cause__


def run(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op, below all active layers."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            return out_variants.run_out(op, args, kwargs, out)
    if op.kind == "primitive":
        return executed(op, args, kwargs)
    if op.overridden:
        return run_overridden(op, args, kwargs)
    return run_decomposition(op, args, kwargs)


def through_layers(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op through the layers that are active in this thread, unless an argument takes it over."""
    made = taken_over(op, args, kwargs)
    if made is not None:
        return made[0]
    if "out" in kwargs and kwargs["out"] is None:
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    found = dispatchers(args, kwargs)
    try:
        if not found:
            args, kwargs = plain_arguments(op, args, kwargs)
    except Intercepted:
        return intercept(op, args, kwargs)
    stack = thread.stack
    if not stack:
        if not thread.preferred:
            settle()
        return hand_over(found, op, args, kwargs) if found else run(op, args, kwargs)
    return enter_layers(stack, len(stack) - 1, op, args, kwargs)


def enter_layers(
    stack: tuple[Layer, ...], position: int, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call an op through the layer at a position of a stack, and those below it."""
    layer = stack[position]
    # While a layer works, its own ops meet only the layers below it.
    below = stack[:position]

    def proceed(*args: Any, **kwargs: Any) -> Any:
        if position:
            return enter_layers(stack, position - 1, op, args, kwargs)
        inside = thread.stack
        thread.stack = tuple([entry for entry in stack if entry.nested])
        try:
            found = dispatchers(args, kwargs)
            return hand_over(found, op, args, kwargs) if found else run(op, args, kwargs)
        finally:
            thread.stack = inside

    previous = thread.stack
    thread.stack = below
    thread.entered = stack
    try:
        return layer(op, args, kwargs, proceed)
    finally:
        thread.stack = previous


dispatch_state.through_layers = through_layers
