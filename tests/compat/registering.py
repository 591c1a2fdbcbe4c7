"""Plugins that stand for compiled libraries, registered for a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorplug.core import plugins


@contextmanager
def as_before(plugin: Any) -> Iterator[None]:
    """Unregister a plugin at the end of a block if it was not registered at its beginning."""
    known = plugins.record_of(plugin.name) is not None
    try:
        yield
    finally:
        if not known and plugins.record_of(plugin.name) is not None:
            plugins.unregister(plugin.name)


@contextmanager
def registered(plugin: Any) -> Iterator[None]:
    """Have a plugin be registered within a block."""
    with as_before(plugin):
        if plugins.record_of(plugin.name) is None:
            plugins.register(plugin)
        yield
