"""Handles with which hooks are taken away again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Self

_ids = itertools.count()


class RemovableHandle:
    """What registering a hook returns: ``handle.remove()`` takes it away, so does leaving a ``with``.

    Attributes
    ----------
    id : int
        The key in the dictionary of hooks.
    """

    def __init__(self, hooks: dict[int, Callable[..., Any]]) -> None:
        self.id = next(_ids)
        self._hooks: dict[int, Callable[..., Any]] = hooks

    @classmethod
    def register(
        cls, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Put `hook` into `hooks`; return the handle."""
        if not callable(hook):
            raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
        handle = cls(hooks)
        hooks[handle.id] = hook
        return handle

    def remove(self) -> None:
        """Take the hook away; doing so twice is no error."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
