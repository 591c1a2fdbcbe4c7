"""How many processors there are for this process."""

from __future__ import annotations

import os


def available_processors() -> int:
    """Return how many processors this process may use; where the system does not tell, all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
