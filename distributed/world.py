"""Joining the world, the group of all processes, and leaving it."""

from __future__ import annotations

import atexit
import os
import sys
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from tensorplug.core.plugins.process_groups import Communicator, ProcessGroupBackend, Rendezvous

from .backends import chosen_for
from .errors import DistBackendError
from .groups import GroupMember, ProcessGroup, _groups, default_pg_timeout, resolve
from .rendezvous import (
    from_environment,
    meeting_point,
    place,
    place_in_environment,
    rendezvous,
    said,
)
from .stores import Store


def _rendezvous(
    init_method: str | None,
    world_size: int,
    rank: int,
    backend: ProcessGroupBackend,
    timeout: timedelta,
    store: Store | None,
) -> Rendezvous:
    launched = backend.launched()
    address = init_method or "env://"
    method = urlsplit(address)
    if launched is not None:
        if rank >= 0 and world_size > 0 and (rank, world_size) != launched:
            raise ValueError(
                f"init_process_group was given rank {rank} of {world_size}, but this process was "
                f"started as rank {launched[0]} of {launched[1]}"
            )
        return Rendezvous(*launched, timeout=timeout)
    if store is None and method.scheme not in ("env", "tcp"):
        found = rendezvous(address, rank, world_size, timeout=timeout)
        store, rank, world_size = next(found)
    if store is not None:
        if rank < 0 or world_size < 1:
            raise ValueError("a store needs rank and world_size as well")
        return Rendezvous(rank, world_size, *meeting_point(store, rank, world_size), timeout)
    given = said(address, rank, world_size)
    if method.scheme == "tcp":
        return Rendezvous(*place(given, "tcp"), method.hostname or "", method.port or 0, timeout)
    rank, size = place_in_environment(given)
    if size == 1:
        return Rendezvous(rank, size, timeout=timeout)
    port = from_environment("MASTER_PORT")
    return Rendezvous(rank, size, os.environ.get("MASTER_ADDR", ""), port, timeout)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the world: all processes that were started together, or that meet at one address.

    A program that ``mpiexec`` or ``python -m tensorplug.distributed.run`` started knows its world. Otherwise
    the environment has to say it, as torchrun does (``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``,
    ``MASTER_PORT``), or the arguments.

    Parameters
    ----------
    backend : str, optional
        "mpi", "nccl" or that of another plugin; "gloo" is served by MPI. "cpu:mpi,cuda:nccl" chooses for each
        device type; None takes for each the one of the highest priority.
    init_method : str, optional
        "env://", the default; "tcp://host:port" or "file:///path" with `world_size` and `rank`; or what
        ``register_rendezvous_handler`` knows.
    timeout : timedelta, optional
        How long a collective may take; 30 minutes by default.
    world_size, rank : int
        How many processes there are, and which this is.
    store : Store, optional
        By which the processes find each other, in place of `init_method`; with `world_size` and `rank`.
    group_name, pg_options, device_id
        Are accepted for torch's sake.

    Raises
    ------
    ValueError
        If the world was joined already, an argument or environment variable is missing, or none of that name.
    RuntimeError
        If the backend is not installed or cannot be used; the message says what would help.

    Examples
    --------
    ::

        import tensorplug.distributed as dist

        dist.init_process_group()
        t = tp.ones(3) * dist.get_rank()
        dist.all_reduce(t)
        dist.destroy_process_group()
    """
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}"
        )
    limit = timeout or default_pg_timeout
    chosen = chosen_for(backend)
    communicators: dict[str, Communicator] = {}
    made: dict[int, Communicator] = {}
    for type_, (_, found) in chosen.items():
        if id(found) not in made:
            where = _rendezvous(init_method, world_size, rank, found, limit, store)
            made[id(found)] = found.connect(where)
        communicators[type_] = made[id(found)]
    sizes = {c.size for c in made.values()}
    if len(sizes) != 1:
        raise DistBackendError(f"the backends found worlds of {sorted(sizes)} processes")
    names = list(dict.fromkeys(name for name, _ in chosen.values()))
    label = names[0] if len(names) == 1 else ",".join(f"{t}:{n}" for t, (n, _) in chosen.items())
    world = ProcessGroup("0", range(sizes.pop()), label, communicators, limit)
    world.bound_device_id = device_id
    _groups["0"] = GroupMember.WORLD = world
    _install_end_of_the_world()


_installed = False


def _install_end_of_the_world() -> None:
    """Have a failure of this process end the others: they would wait for it until they time out."""
    global _installed
    if _installed:
        return
    _installed = True
    before = sys.excepthook

    def hook(kind: Any, error: BaseException, place: Any) -> None:
        before(kind, error, place)
        _abort()

    sys.excepthook = hook
    atexit.register(_at_exit)


def _abort() -> None:
    world = GroupMember.WORLD
    if world is not None and world.size() > 1 and not hasattr(sys, "ps1"):
        sys.stdout.flush()
        sys.stderr.flush()
        for communicator in world._distinct():
            communicator.abort()


def _at_exit() -> None:
    """Leaving in good order takes all processes; after a failure it would not come to an end."""
    if any(left._broken for left in _groups.values()):
        _abort()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; the world, the default, with all others.

    Raises
    ------
    ValueError
        If the group is none that this process has joined.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    chosen = resolve(group)
    leaving = list(_groups.values()) if chosen is GroupMember.WORLD else [chosen]
    for left in reversed(leaving):
        if left is None:
            continue
        _groups.pop(left._name, None)
        if not left._broken:
            for pending in list(left._pending):
                pending.wait()
            for communicator in left._distinct():
                communicator.close()
    if chosen is GroupMember.WORLD:
        GroupMember.WORLD = None
