"""The plugin, and the backend that it brings. Nothing here imports CuPy before it is used."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from tensorplug.plugin import Communicator, ProcessGroupBackend, Rendezvous, hookimpl


class NcclBackend(ProcessGroupBackend):
    """Process groups of "nccl": a GPU for each process."""

    name = "nccl"
    device_types = frozenset(["cuda"])

    def unavailable_reason(self) -> str | None:
        if importlib.util.find_spec("cupy") is None:
            return "CuPy is not installed; pip install 'tensorplug-dist-nccl[cuda13]'"
        try:
            cuda: Any = importlib.import_module("cupy.cuda")
        except Exception as error:
            return f"CuPy cannot be imported ({error})"
        if not getattr(cuda, "nccl", None) or not cuda.nccl.available:
            return "CuPy finds no NCCL; pip install nvidia-nccl-cu13, or -cu12"
        try:
            return None if cuda.runtime.getDeviceCount() else "there is no GPU"
        except Exception as error:
            return f"there is no usable GPU ({error})"

    def connect(self, rendezvous: Rendezvous) -> Communicator:
        from ._communicator import connect

        return connect(rendezvous)


class NcclPlugin:
    """Brings the backend."""

    name = "dist_nccl"

    @hookimpl
    def tensorplug_process_groups(self) -> Iterable[ProcessGroupBackend]:
        return [NcclBackend()]


plugin = NcclPlugin()
