"""Helpers of modes, as ``torch.utils._mode_utils`` has them."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.layers import isolated
from tensorplug.core.dispatch.overrides import DisableTorchDispatch

__all__ = ["all_same_mode", "no_dispatch"]


class no_dispatch(isolated, DisableTorchDispatch):
    """Has nothing see what is computed within a ``with`` block, neither modes nor classes."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return isolated._changes(self) | DisableTorchDispatch._changes(self)


def all_same_mode(modes: Any) -> bool:
    """Return whether all are one and the same.

    Examples
    --------
    >>> all_same_mode([1, 1, 2])
    False
    """
    return all(mode == modes[0] for mode in modes)
