"""Exceptions of tensorplug.

Each one derives from the built-in type that a PyTorch user already catches, so ``except RuntimeError``
written for torch keeps working.
"""

from __future__ import annotations

import sys
import warnings

from .contexts import thread

_MADE_BY_A_CLASS_STATEMENT = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def type_name(value: object) -> str:
    """Return the name of a value's class for an error, with the module of one that is written in C."""
    kind = type(value)
    if kind.__module__ == "builtins" or kind.__flags__ & _MADE_BY_A_CLASS_STATEMENT:
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


def check_flag(value: object, name: str, flag: str = "keepdim", ints: bool = False) -> None:
    """Raise TypeError unless a flag is a bool: ``sum(1, 2)`` is no sum over two dimensions.

    With `ints`, whole numbers stand for their truth, as in torch's functions that hand them on to C.
    """
    if value is not True and value is not False and not (ints and hasattr(value, "__index__")):
        more = "; several dimensions are given as a tuple" if flag == "keepdim" else ""
        raise TypeError(f"{name}(): argument '{flag}' must be bool, not {type_name(value)}{more}")


class TensorplugError(Exception):
    """Base of every exception that only tensorplug raises."""


class KernelNotFoundError(TensorplugError, NotImplementedError):
    """No kernel, decomposition or permitted fallback runs an op on a device and dtype."""


class KernelContractError(TensorplugError, RuntimeError):
    """A plugin's kernel returned something that its op's declaration rules out."""


class DeviceNotAvailableError(TensorplugError, RuntimeError):
    """A device type has no plugin, or its plugin cannot reach the hardware."""


class DTypeNotAvailableError(TensorplugError, TypeError):
    """A device cannot hold a dtype that was asked for, or that an op results in."""


class PluginError(TensorplugError, RuntimeError):
    """A plugin failed to load, or was refused at registration."""


class RegistrationError(PluginError, ValueError):
    """A plugin registered something that does not fit; nothing of the plugin was kept."""


class LinAlgError(TensorplugError, RuntimeError):
    """A matrix has no such factorization, inverse or solution, or an iteration did not converge."""


class DerivativeNotFoundError(TensorplugError, NotImplementedError):
    """A tensor that requires grad met an op that has neither a derivative nor an explicit none."""


class DerivativeContractError(TensorplugError, RuntimeError):
    """A plugin's formula returned a gradient or tangent of a wrong shape or kind of dtype."""


class OutOfMemoryError(TensorplugError, RuntimeError, MemoryError):
    """There is no memory for an allocation: ``tp.OutOfMemoryError``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> try:
    ...     tp.zeros(1 << 60)
    ... except tp.OutOfMemoryError:
    ...     print("smaller batches need less")
    smaller batches need less
    """


class FallbackWarning(UserWarning):
    """An op ran on the CPU because its device has no kernel for it."""


class PluginWarning(UserWarning):
    """A plugin was quarantined."""


def warn(message: str, category: type[Warning]) -> None:
    """Give a warning that points at the caller outside of this package.

    Layers hear of it: a call that warns is not to be replayed without.
    """
    for layer in thread.stack:
        layer.on_hidden("a warning")
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tensorplug"):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
