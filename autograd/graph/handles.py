"""Handles with which hooks are taken away again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorplug.core.contexts import OwnContext, Steps

_ids = itertools.count()


class RemovableHandle(OwnContext):
    """What registering a hook returns: ``handle.remove()`` takes it away, so does leaving a ``with``.

    Attributes
    ----------
    id : int
        The key in the dictionary of hooks.
    also : sequence of RemovableHandle
        Of hooks that are taken away with this one.
    """

    def __init__(self, hooks: dict[int, Callable[..., Any]]) -> None:
        self.id = next(_ids)
        self._hooks: dict[int, Callable[..., Any]] = hooks
        self.also: Sequence[RemovableHandle] = ()

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
        for handle in self.also:
            handle.remove()

    def _steps(self) -> tuple[Steps, Steps]:
        return (), [partial(handle._hooks.pop, handle.id, None) for handle in (self, *self.also)]
