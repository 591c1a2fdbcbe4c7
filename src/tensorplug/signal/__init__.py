"""Signal processing, under the names of ``torch.signal``."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
