"""What ``tp.cuda.set_sync_debug_mode`` says to an op that waits for a device.

Every copy of ours to the host goes through :func:`note`, and every one of CuPy's own through
``cupy._core.syncdetect``, into which :func:`set_mode` puts it. ``tp.cuda.synchronize()``, and waiting for a
stream or an event, are what the user asked for, and are not noted.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_MODES = ("default", "warn", "error")
_SAYS = (
    "called a synchronizing CUDA operation: the host waits here until the GPU has done what is queued "
    "(item(), tolist(), cpu(), a truth value or an op whose shape depends on values)"
)
_mode = 0


def note() -> None:
    """Warn or raise, if that was asked for: this thread is about to wait for the device.

    Raises
    ------
    RuntimeError
        In mode "error".
    """
    if _mode == 1:
        warnings.warn(_SAYS, UserWarning, stacklevel=2)
    elif _mode == 2:
        raise RuntimeError(_SAYS)


def set_mode(debug_mode: int | str) -> None:
    """Say what happens when an op waits for the device: "default", "warn" or "error", or 0, 1 or 2.

    Raises
    ------
    TypeError, RuntimeError
        If there is no such mode.
    """
    global _mode
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_sync_debug_mode(): expects an int or a str, got {type(debug_mode).__name__}"
        )
    known = debug_mode in _MODES if isinstance(debug_mode, str) else 0 <= debug_mode <= 2
    if not known:
        raise RuntimeError(
            "set_sync_debug_mode(): expects one of 'default', 'warn', 'error', or 0, 1, 2, got "
            f"{debug_mode!r}"
        )
    _mode = _MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    _watch_cupy()


def mode() -> int:
    """Return the mode as a number."""
    return _mode


_cupys: list[Any] = []  # CuPy's function, while ours is in its place


def _watch_cupy() -> None:
    """Put :func:`note` where CuPy calls a function before it waits, or take it out."""
    module: Any = importlib.import_module("cupy._core.syncdetect")
    if _mode and not _cupys:
        _cupys.append(module._declare_synchronize)
        module._declare_synchronize = note
    elif not _mode and _cupys:
        module._declare_synchronize = _cupys.pop()
