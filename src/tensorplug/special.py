"""Special functions, under the names of ``torch.special``."""

from __future__ import annotations

from tensorplug.core.ops.special.namespace import *
