"""Linear algebra, under the names of ``torch.linalg``."""

from __future__ import annotations

from tensorplug.core.ops.linalg.namespace import *
