"""The errors of torch.distributed, all RuntimeErrors."""

from __future__ import annotations

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistQueueEmptyError",
    "DistStoreError",
]


class DistError(RuntimeError):
    """Something between processes went wrong."""


class DistBackendError(DistError):
    """A backend of process groups failed, or ran into its time-out."""


class DistNetworkError(DistError):
    """Processes could not reach each other."""


class DistStoreError(DistError):
    """A store failed, or a key did not come in time."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store is empty."""
