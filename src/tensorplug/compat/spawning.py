"""Spawned processes: they start with a fresh interpreter, and import the program before they do anything."""

from __future__ import annotations

import multiprocessing.spawn
from collections.abc import Callable
from typing import Any

_original = multiprocessing.spawn.get_preparation_data


class _Call:
    """Calls a function where it is unpickled."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return self._function, ()


def tell_children(function: Callable[[], Any] | None) -> None:
    """Have processes that are spawned from now on call a function first, or with None nothing.

    A new process unpickles a dict of what it needs to know, then imports the program. Keys that it has no
    use for are ignored, so one is added that calls the function when it is unpickled.
    """

    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = _original(name)
        if name == "ignore":  # for a fork server, which has not been told and must not import it
            data.pop("init_main_from_path", None)
        return data | {"tensorplug_compat": _Call(function)} if function else data

    multiprocessing.spawn.get_preparation_data = get_preparation_data if function else _original
