"""The queues of devices on which ops run, streams as users know them, where a backend has several.

A backend whose runtime returns queues tells :func:`queues_differ` when a thread leaves the usual one, and
when it comes back. Meanwhile the gradient layer records with each op where it ran, as its derivative runs
there, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..locks import renewed

#: How many threads are on another queue than the usual one, and whether any ever was.
elsewhere = 0
ever = False

_lock = renewed(threading.Lock())
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Call a function whenever :data:`elsewhere` has changed."""
    _listeners.append(listener)


def queues_differ(by: int) -> None:
    """Count that a thread has left its device's usual queue (1), or that it is back there (-1)."""
    global elsewhere, ever
    with _lock:
        elsewhere += by
        ever = True
    for listener in _listeners:
        listener()


def threads_elsewhere() -> int:
    """Return how many threads are on another queue than the usual one."""
    return elsewhere
