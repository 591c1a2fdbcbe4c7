"""Copies from a device to the host that are not waited for."""

from __future__ import annotations

from typing import Any

from ..device.device import CPU
from ..tensor.base import TensorBase, bump_version
from .composite_runs import any_tracked
from .state import dispatch_state


def queued_into(target: Any, src: Any) -> bool:
    """Queue a copy of a device's tensor into one of the host; return False if it has to be made at once.

    So it has where something is converted, broadcast or recorded.
    """
    if not (
        isinstance(target, TensorBase)
        and isinstance(src, TensorBase)
        and target._key.device is CPU
        and src._key.device is not CPU
        and src._key.dtype is target._key.dtype
        and src._shape == target._shape
    ):
        return False
    if any_tracked((target, src)) and (
        not dispatch_state.grad_disabled or dispatch_state.gradient.enabled()
    ):
        return False
    host = target._key.runtime.to_host(target._array)
    if src._key.runtime.queue_to_host(src._array, host) is None:
        return False
    bump_version(target)
    return True
