"""The plugin object that the entry point names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import DeviceNotAvailableError, DeviceRuntime, hookimpl

NAME = "mps_mlx"


class _Nothing:
    """Stands for arrays where MLX is missing."""


class AbsentRuntime(DeviceRuntime):
    """The runtime of "mps" where MLX cannot be imported."""

    type = "mps"
    array_type = _Nothing

    def __init__(self, error: ImportError) -> None:
        self._error = error

    def unavailable_reason(self) -> str:
        """Return what is missing, and what installs it."""
        package = "mlx" if sys.platform == "darwin" else "'mlx[cpu]'"
        tests = (
            "" if sys.platform == "darwin" else ", whose CPU device stands in for Metal in tests"
        )
        return f"MLX cannot be imported ({self._error}); pip install {package}{tests}"

    def _refuse(self, *args: Any) -> Any:
        raise DeviceNotAvailableError(self.unavailable_reason())

    # Required of a runtime, and never called where no device can be used.
    dtype: Any = _refuse
    empty: Any = _refuse
    scalar: Any = _refuse
    copy_into: Any = _refuse
    from_host: Any = _refuse
    to_host: Any = _refuse


class AbsentPlugin:
    """The plugin where MLX cannot be imported."""

    name = NAME

    def __init__(self, error: ImportError) -> None:
        self.runtime = AbsentRuntime(error)

    @hookimpl
    def tensorplug_devices(self) -> Iterable[DeviceRuntime]:
        """Return the runtime, which says what is missing."""
        return [self.runtime]


def _made() -> Any:
    try:
        importlib.import_module("mlx.core")
    except ImportError as error:
        return AbsentPlugin(error)
    from .backend import made  # on first use: it imports MLX

    return made(NAME)


plugin = _made()
