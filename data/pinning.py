"""Batches in page-locked memory."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any


def pin(data: Any) -> Any:
    """Return a batch with each tensor in page-locked memory, where a device offers it.

    What has a method ``pin_memory`` is asked itself.
    """
    if hasattr(data, "pin_memory"):  # as tensors have it
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, MutableMapping):
        clone = copy.copy(data)
        clone.update({key: pin(value) for key, value in data.items()})
        return clone
    if isinstance(data, Mapping):
        return {key: pin(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin, data))
    if isinstance(data, Sequence):
        parts = [pin(value) for value in data]
        return tuple(parts) if isinstance(data, tuple) else parts
    return data
