"""The kernels below these, for what a compiled one declines, such as empty arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import DType, get_op, kernel_below

from ._dtypes import NATIVES

PLUGIN = "cpu_cython"

_DTYPES = {native: dtype for dtype, native in NATIVES.items()}


def below(op: str) -> Callable[..., Any]:
    """Return a callable that runs an op by the kernel below ours, found at each call.

    An argument after the op's own is an array to write to, or None.
    """
    arity = -1  # known once the op is registered

    def call(*arguments: Any) -> Any:
        nonlocal arity
        if arity < 0:
            arity = get_op(op).arity
        if len(arguments) <= arity:
            return kernel_below(op, "cpu", _key(arguments), PLUGIN)(*arguments)
        *own, out = arguments
        return kernel_below(op, "cpu", _key(own), PLUGIN, out=True)(*own, out=out)

    return call


def _key(arguments: Any) -> DType:
    """Return the dtype by which a kernel is looked up."""
    for value in arguments:
        if type(value) is np.ndarray or isinstance(value, (np.ndarray, np.generic)):
            return _DTYPES[value.dtype]
        if isinstance(value, DType):
            return value
    raise TypeError("there is no array among the arguments")
