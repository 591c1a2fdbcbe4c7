"""Locks that a forked child can take.

A child is a copy of the process with one thread. A lock that another thread held at that moment would stay
taken in it for good, so there every lock is made anew.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

L = TypeVar("L")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def renewed(lock: L) -> L:
    """Have a lock, ``threading.Lock()`` or ``RLock()``, be free in children that are forked; return it."""
    _locks.add(lock)
    return lock


def _renew() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
