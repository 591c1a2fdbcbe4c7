"""``tp.utils.deterministic``: the one setting beside :func:`use_deterministic_algorithms`."""

from __future__ import annotations

import sys
import types

from tensorplug.core.device import determinism


class _Settings(types.ModuleType):
    """A module whose setting is the library's."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether memory without contents is filled while deterministic algorithms are asked for."""
        return determinism.filling[0]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"fill_uninitialized_memory must be a bool, not {type(value).__name__}")
        determinism.fill_if_wanted(value)


sys.modules[__name__].__class__ = _Settings
