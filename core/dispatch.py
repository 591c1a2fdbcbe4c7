"""The dispatcher: from an op and its arguments to a kernel and back to tensors.

:mod:`.pointwise` is the hot path: pointwise ops whose arguments need neither conversion nor checks.
:mod:`.calls` remembers what rules came to. Everything else goes through :func:`general`: the declared rule
makes a :class:`~tensorplug.core.op.Spec`, :func:`.execution.execute` calls the kernel with it.

What interposes on calls (autograd, autocast, tracing, profiling) is a layer, see :mod:`.layers`. The
gradient layer is reached directly where an input requires grad; any other makes ``interposed`` nonzero.
"""

from __future__ import annotations

from typing import Any

from .composites import run_decomposition, run_overridden
from .current import current
from .execution import execute
from .op import Op


def general(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op with any arguments."""
    if current.interposed:
        return current.through_layers(op, args, kwargs)
    return run(op, args, kwargs)


def run(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call any op, below all interposed layers."""
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is not None:
            from .writing import run_out

            return run_out(op, args, kwargs, out)
    if op.sort == "primitive":
        return execute(op, op.function(*args, **kwargs))
    if op.overridden:
        return run_overridden(op, args, kwargs)
    return run_decomposition(op, args, kwargs)
