"""State dicts from the network, under the name that torch once gave it: see :mod:`tensorplug.hub`."""

from __future__ import annotations

from tensorplug.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
