"""How processes that nobody started together become one world of MPI.

MPI asks a process manager who else there is. Where no mpiexec stands behind the processes, one of our own
does, ``_manager.py``, which rank 0 starts at ``MASTER_PORT``. It speaks the first version of PMI, as MPICH
and its relatives do over TCP ("PMI_PORT", "PMI_ID"); Open MPI does not.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from tensorplug.plugin import Rendezvous

_MANAGER = Path(__file__).with_name("_manager.py")


def meet(rendezvous: Rendezvous) -> None:
    """Start MPI in this process as a member of the world that a rendezvous describes."""
    rank, size = rendezvous.rank, rendezvous.size
    if "mpi4py.MPI" in sys.modules or rank is None or size is None or size == 1:
        return
    host = rendezvous.address or "localhost"
    limit = rendezvous.timeout.total_seconds()
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not within a world of {size} processes")
    if rank == 0:
        _start_manager(host, rendezvous.port, size)
    _wait_for_manager(host, rendezvous.port, rank, limit)
    # Children of this process are no members: they get none of these.
    added = {"PMI_PORT": f"{host}:{rendezvous.port}", "PMI_ID": str(rank)}
    os.environ.update(added)
    try:
        from mpi4py import MPI  # noqa: F401  # importing it starts MPI
    finally:
        for name in added:
            os.environ.pop(name, None)


def _start_manager(host: str, port: int, size: int) -> None:
    """Start the process manager; it ends when all have left, or soon after this process."""
    # In a process of its own: starting MPI holds this interpreter's lock. MPI needs it until after the last
    # of Python's exit handlers, so nobody waits for it here: the open end of the pipe tells it.
    command = [sys.executable, "-I", "-S", str(_MANAGER), host, str(port), str(size)]
    below, _kept_open = os.pipe()
    heard, said = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, below, 0), (os.POSIX_SPAWN_DUP2, said, 1)]
    os.posix_spawn(sys.executable, command, dict(os.environ), file_actions=actions)
    os.close(below)
    os.close(said)
    with os.fdopen(heard) as answers:
        answer = answers.readline().strip()
    if answer != "ready":
        raise RuntimeError(
            f"rank 0 cannot listen at {host}:{port}: {answer or 'no answer'}; choose another "
            "MASTER_ADDR or MASTER_PORT"
        )


def _wait_for_manager(host: str, port: int, rank: int, limit: float) -> None:
    """Wait until rank 0 listens."""
    deadline = time.monotonic() + limit
    while True:
        try:
            with socket.create_connection((host, port), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"rank {rank} found nobody at {host}:{port} within {limit:g} s ({error}); is rank 0 "
                    "running, and are MASTER_ADDR and MASTER_PORT the same on all?"
                ) from None
            time.sleep(0.05)
