"""The dispatcher: from an op and its arguments to a kernel and back to tensors.

:mod:`.fast_path` is the hot path: pointwise ops whose arguments need neither conversion nor checks.
:mod:`.calls` caches the specs of ops. Everything else goes through :func:`general`: the declared rule
makes a :class:`~tensorplug.core.dispatch.op.Spec`, :func:`.execution.execute` calls the kernel with it.

What intercepts calls (autograd, autocast, tracing, profiling) is a layer, see :mod:`.layers`. The
gradient layer is reached directly where an input requires grad; any other makes ``layers_active`` nonzero.
"""

from __future__ import annotations

from typing import Any

from .arguments import Foreign, plain_arguments
from .composite_calls import run_decomposition, run_overridden
from .execution import execute
from .interception import Intercepted, intercept
from .op import Op
from .out_variants import run_out
from .state import dispatch_state


def general(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op with any arguments."""
    if dispatch_state.layers_active:
        return dispatch_state.through_layers(op, args, kwargs)
    try:
        args, kwargs = plain_arguments(op, args, kwargs)
    except Foreign:
        return dispatch_state.through_layers(op, args, kwargs)
    except Intercepted:
        return intercept(op, args, kwargs)
    return run(op, args, kwargs)


def run(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op, below all active layers."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            return run_out(op, args, kwargs, out)
    if op.kind == "primitive":
        return execute(op, op.function(*args, **kwargs))
    if op.overridden:
        return run_overridden(op, args, kwargs)
    return run_decomposition(op, args, kwargs)
