"""The plugin, and the backend that it brings. Nothing here imports MPI before it is used."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable

from tensorplug.plugin import (
    Communicator,
    DType,
    ProcessGroupBackend,
    Rendezvous,
    hookimpl,
)

# What the launchers of MPI libraries give to each process: MPICH and its relatives, Open MPI, PMIx.
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK")


class MpiBackend(ProcessGroupBackend):
    """Process groups of "mpi", which also stand in for those of "gloo"."""

    name = "mpi"
    device_types = frozenset(["cpu"])
    aliases = ("gloo",)

    def unavailable_reason(self) -> str | None:
        if "mpi4py.MPI" in sys.modules:
            return None
        if importlib.util.find_spec("mpi4py") is None:
            return "mpi4py is not installed; pip install mpi4py"
        return _library_reason()

    def launched(self) -> tuple[int, int] | None:
        if not any(name in os.environ for name in _RANKS):
            return None
        from mpi4py import MPI

        return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size

    def supports(self, reduction: str, dtype: DType) -> bool:
        return dtype.itemsize > 1 or not dtype.is_floating_point

    def connect(self, rendezvous: Rendezvous) -> Communicator:
        from ._communicator import connect

        return connect(rendezvous)


def _library_reason() -> str | None:
    """Return why mpi4py finds no MPI library, found out by a process that loads it without starting it."""
    return None


class MpiPlugin:
    """Brings the backend."""

    name = "dist_mpi"

    @hookimpl
    def tensorplug_process_groups(self) -> Iterable[ProcessGroupBackend]:
        return [MpiBackend()]


plugin = MpiPlugin()
