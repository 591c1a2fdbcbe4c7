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

    Parameters
    ----------
    hooks_dict : dict
        The hooks, by the handles' ids.
    extra_dict : dict or sequence of dict, optional
        What is noted of some of them, by the same ids; it goes with the hook.

    Attributes
    ----------
    id : int
        The key in the dictionary of hooks.
    also : sequence of RemovableHandle
        Of hooks that are taken away with this one.
    """

    def __init__(
        self,
        hooks_dict: dict[int, Callable[..., Any]],
        *,
        extra_dict: dict[int, Any] | Sequence[dict[int, Any]] | None = None,
    ) -> None:
        self.id = next(_ids)
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self._tables: list[dict[int, Any]] = [hooks_dict, *extra]
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

    def note(self, table: dict[int, bool]) -> None:
        """Set the hook's entry in `table`, until the hook is taken away."""
        table[self.id] = True
        self._tables.append(table)

    def hooks_dict_ref(self) -> dict[int, Callable[..., Any]]:
        """Return the dictionary of hooks."""
        return self._tables[0]

    def remove(self) -> None:
        """Take the hook away; doing so twice is no error."""
        for table in self._tables:
            table.pop(self.id, None)
        for handle in self.also:
            handle.remove()

    def _steps(self) -> tuple[Steps, Steps]:
        return (), [
            partial(table.pop, handle.id, None)
            for handle in (self, *self.also)
            for table in handle._tables
        ]
