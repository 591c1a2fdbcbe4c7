"""``DistributedDataParallel`` under the path that torch has it at."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorplug.distributed.data_parallel import DistributedDataParallel
else:
    DistributedDataParallel = importlib.import_module(
        "tensorplug.distributed.data_parallel"
    ).DistributedDataParallel

__all__ = ["DistributedDataParallel"]
