"""One module on several devices or in several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data_parallel import DataParallel, data_parallel

if TYPE_CHECKING:
    from tensorplug.distributed.data_parallel import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":
        from . import distributed  # on first use: what several processes need stands above nn

        return distributed.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
