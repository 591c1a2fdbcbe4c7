"""Values that come later: ``concurrent.futures`` with torch's methods."""

from tensorplug.core.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
