"""The device "strict": arrays that have what the Python array API standard says, and nothing else.

It computes no faster than NumPy, which is behind it. It shows that the adapter asks a library for
nothing beyond the standard.
"""

from __future__ import annotations

import array_api_strict as xp

from tensorplug.plugin import array_api_backend

__all__ = ["plugin"]

plugin = array_api_backend(xp, device_type="strict")
