"""How processes learn where to meet: by the environment, an address, a file or what is registered."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from .file_store import FileStore
from .stores import DEFAULT_TIMEOUT, PrefixStore, Store
from .tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

_Found = tuple[Store, int, int]
_handlers: dict[str, Callable[..., Iterator[_Found]]] = {}


def from_environment(name: str) -> int:
    """Return a number of the environment that launchers set."""
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set. Start the program with `mpiexec -n N` or "
            "`python -m tensorplug.distributed.run --nproc-per-node N`"
        )
    return int(value)


def register_rendezvous_handler(
    scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]
) -> None:
    """Have a function find the others for addresses that begin with ``scheme://``.

    Parameters
    ----------
    scheme : str
        None that is known already.
    handler : callable
        ``handler(url, timeout=…)`` yields a store, this process's rank, and the number of processes.

    Raises
    ------
    RuntimeError
        If the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[_Found]:
    """Return an iterator over a store, this process's rank, and the number of processes.

    Parameters
    ----------
    url : str
        "env://", "tcp://host:port?rank=0&world_size=2", "file:///path" or of a registered scheme.
    rank, world_size : int
        What the address does not say.

    Raises
    ------
    RuntimeError
        If nobody knows the scheme.
    ValueError
        If rank or number of processes are missing.
    """
    parts = urlsplit(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = "&".join(f"{name}={value}" for name, value in said(url, rank, world_size).items())
    return _handlers[parts.scheme](parts._replace(query=query).geturl(), **kwargs)


def said(url: str, rank: int = -1, world_size: int = -1) -> dict[str, str]:
    """Return what stands after an address's question mark, where arguments do not say otherwise."""
    given = dict(pair.split("=", 1) for pair in urlsplit(url).query.split("&") if pair)
    if rank >= 0:
        given["rank"] = str(rank)
    if world_size >= 0:
        given["world_size"] = str(world_size)
    return given


def place(given: dict[str, str], kind: str) -> tuple[int, int]:
    """Return rank and number of processes; refuse that one is not said."""
    for name, word in (("rank", "rank"), ("world_size", "world size")):
        if name not in given:
            raise ValueError(
                f"Error initializing torch.distributed using {kind}:// rendezvous: {word} parameter missing"
            )
    return int(given["rank"]), int(given["world_size"])


def place_in_environment(given: dict[str, str]) -> tuple[int, int]:
    """Return rank and number of processes, those that are not said from the environment."""
    rank = int(given["rank"]) if "rank" in given else from_environment("RANK")
    size = int(given["world_size"]) if "world_size" in given else from_environment("WORLD_SIZE")
    return rank, size


def _env(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **_: Any) -> Iterator[_Found]:
    rank, size = place_in_environment(said(url))
    host = os.environ.get("MASTER_ADDR", "localhost")
    port = from_environment("MASTER_PORT")
    yield TCPStore(host, port, size, rank == 0, timeout), rank, size


def _tcp(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **_: Any) -> Iterator[_Found]:
    rank, size = place(said(url), "tcp")
    parts = urlsplit(url)
    if parts.port is None:
        raise ValueError(
            "Error initializing torch.distributed using tcp:// rendezvous: port number missing"
        )
    yield TCPStore(parts.hostname or "", parts.port, size, rank == 0, timeout), rank, size


def _file(url: str, **_: Any) -> Iterator[_Found]:
    rank, size = place(said(url), "file")
    path = urlsplit(url).path
    if not path:
        raise ValueError(
            "Error initializing torch.distributed using file:// rendezvous: path missing"
        )
    yield FileStore(path, size), rank, size


for _scheme, _handler in (("env", _env), ("tcp", _tcp), ("file", _file)):
    register_rendezvous_handler(_scheme, _handler)


def meeting_point(store: Store, rank: int, size: int) -> tuple[str, int]:
    """Return the host and port of rank 0, which chooses them and tells the others by a store.

    A store may serve several worlds, one after the other: each has its own key.
    """
    mine = store.add(f"meeting/{rank}", 1)
    told = PrefixStore(f"meeting/{size}/{mine}", store)
    if rank == 0:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        told.set("at", f"{_own_address()} {port}")
    host, chosen = told.get("at").decode().split()
    return host, int(chosen)


def _own_address() -> str:
    """Return an address by which other machines reach this one, or this machine's own for itself."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
