"""How processes learn the identifier that NCCL makes a communicator of: rank 0 hands it to each by TCP."""

from __future__ import annotations

import pickle
import socket
import time
from typing import Any

from tensorplug.plugin import Rendezvous

# Another backend of the same world may meet at the port itself.
_NEXT = 1


def exchange(rendezvous: Rendezvous, identifier: Any) -> Any:
    """Return rank 0's identifier on all ranks; `identifier` is None on the others."""
    rank, size = rendezvous.rank, rendezvous.size
    if rank is None or size is None:
        raise RuntimeError(
            "NCCL needs the rank and the number of processes; RANK and WORLD_SIZE say them"
        )
    if size == 1:
        return identifier
    place = (rendezvous.address or "localhost", rendezvous.port + _NEXT)
    limit = rendezvous.timeout.total_seconds()
    return _give(place, identifier, size, limit) if rank == 0 else _take(place, rank, limit)


def _give(place: tuple[str, int], identifier: Any, size: int, limit: float) -> Any:
    with socket.create_server(place) as server:
        server.settimeout(limit)
        for served in range(1, size):
            try:
                other, _ = server.accept()
            except TimeoutError:
                raise RuntimeError(
                    f"{size - served} of {size} ranks did not come to {place[0]}:{place[1]} within "
                    f"{limit:g} s"
                ) from None
            with other:
                other.sendall(pickle.dumps(identifier))
    return identifier


def _take(place: tuple[str, int], rank: int, limit: float) -> Any:
    deadline = time.monotonic() + limit
    while True:
        try:
            with socket.create_connection(place, timeout=5) as server:
                parts = []
                while part := server.recv(4096):
                    parts.append(part)
            return pickle.loads(b"".join(parts))
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"rank {rank} found nobody at {place[0]}:{place[1]} within {limit:g} s ({error})"
                ) from None
            time.sleep(0.05)
