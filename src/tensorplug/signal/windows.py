"""Window functions, under the names of ``torch.signal.windows``."""

from __future__ import annotations

from tensorplug.core.ops.creation.windows_namespace import *
