"""NumPy's floating-point warnings, which are no event in tensor code; see docs/decisions/004."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from tensorplug.plugin import Kernel, hot_path_compiled

# Asking NumPy to ignore a division by zero costs more than a small op. The warning is attributed to the
# Python code that called the ufunc: our own modules, no user's.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tensorplug(_cpu_numpy)?(\.|$)")
_OURS: Any = warnings.filters[0]
_NOTHING = nullcontext()


def silenced() -> AbstractContextManager[Any]:
    """Return a context without NumPy's warnings: an empty one where the filter above comes first."""
    for entry in warnings.filters:
        action, _, category, *_ = entry
        if entry is _OURS:
            return _NOTHING
        if action != "ignore" and issubclass(RuntimeWarning, category):
            break
    return np.errstate(all="ignore")


def attributed(kernels: list[Kernel]) -> list[Kernel]:
    """Return kernels that are called from this module: compiled code is none that the filter knows."""
    if not hot_path_compiled():
        return kernels
    return [
        replace(kernel, function=_behind_a_frame(kernel.function))
        if isinstance(kernel.function, np.ufunc)
        else kernel
        for kernel in kernels
    ]


def _behind_a_frame(ufunc: Any) -> Callable[..., Any]:
    def unary(a: Any, out: Any = None) -> Any:
        return ufunc(a, out=out)

    def binary(a: Any, b: Any, out: Any = None) -> Any:
        return ufunc(a, b, out=out)

    call: Callable[..., Any] = unary if ufunc.nin == 1 else binary
    return functools.wraps(ufunc)(call)
