"""Helpers of module classes, under the path at which torch documents them."""

from __future__ import annotations

from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names in a state dict, in place.

    Parameters
    ----------
    state_dict : dict
        Such as a wrapped module's, whose names begin with ``"module."``.
    prefix : str
        What is taken off where a name begins with it.

    Examples
    --------
    >>> state = {"module.weight": 1, "step": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'step': 2, 'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        if key == prefix.rstrip("."):
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
