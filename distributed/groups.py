"""Process groups, and who is who in them."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from tensorplug.core.plugins.process_groups import Communicator

from .work import Work

default_pg_timeout = timedelta(minutes=30)
log = logging.getLogger(__name__)


class ProcessGroup:
    """Some processes that exchange tensors, in an order; made by ``new_group``."""

    def __init__(
        self,
        name: str,
        ranks: Sequence[int],
        backend: str,
        communicators: dict[str, Communicator],
        timeout: timedelta,
    ) -> None:
        self._name = name
        self._ranks = list(ranks)
        self._backend = backend
        self._communicators = communicators
        self._timeout = timeout
        self._number = 0  # of collectives that this process has started
        self._splits = 0
        self._pending: set[Work] = set()
        self._broken = False
        self._coalesced: list[Work] | None = None  # where work goes within a coalescing block
        self.group_desc = "default_pg" if name == "0" else "undefined"
        self.bound_device_id: Any = None

    def __repr__(self) -> str:
        return f"ProcessGroup(name={self._name!r}, backend={self._backend!r}, ranks={self._ranks})"

    def rank(self) -> int:
        """Return this process's number in the group."""
        return next(iter(self._communicators.values())).rank

    def size(self) -> int:
        """Return how many processes the group has."""
        return len(self._ranks)

    def name(self) -> str:
        """Return the backend's name, as torch does."""
        return self._backend

    @property
    def group_name(self) -> str:
        """A name that no other group has."""
        return self._name

    def _to_global(self, rank: int) -> int:
        return self._ranks[rank]

    def _to_group(self, rank: int) -> int:
        if rank not in self._ranks:
            if self._name == "0":  # as torch's backends say it
                raise RuntimeError(f"invalid rank {rank}: the world has {self.size()} processes")
            raise ValueError(f"Global rank {rank} is not part of group {self!r}")
        return self._ranks.index(rank)

    def _distinct(self) -> list[Communicator]:
        """Return the communicators, each once: one may serve several device types."""
        return list(dict.fromkeys(self._communicators.values()))

    def _communicator(self, device_type: str) -> Communicator:
        found = self._communicators.get(device_type)
        if found is None:
            raise RuntimeError(
                f"No backend type associated with device type {device_type}: the process group has "
                + ", ".join(f"{self._backend} for {known}" for known in self._communicators)
            )
        return found


class GroupMember:
    """What stands for the world, and for a group that this process is no member of."""

    WORLD: ClassVar[ProcessGroup | None] = None
    NON_GROUP_MEMBER: ClassVar[Any] = object()


class _GroupNames(type):
    """``group.WORLD`` is the world that there is now."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return GroupMember.WORLD

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        GroupMember.WORLD = value


class group(metaclass=_GroupNames):
    """Holds ``group.WORLD``, the group of all processes, or None before there is one."""


#: Each group of this process, by its name.
_groups: dict[str, ProcessGroup] = {}


def is_initialized() -> bool:
    """Return whether this process has joined a world.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.is_initialized()
    False
    """
    return GroupMember.WORLD is not None


def _get_default_group() -> ProcessGroup:
    """Return the world.

    Raises
    ------
    ValueError
        If this process has joined none.
    """
    if GroupMember.WORLD is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return GroupMember.WORLD


def resolve(given: ProcessGroup | None) -> ProcessGroup | None:
    """Return the group that a user's argument means, None if this process is no member of it."""
    if given is None:
        return _get_default_group()
    if given is GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(given, ProcessGroup):
        raise TypeError(f"expected a ProcessGroup as group, got {given!r}")
    if _groups.get(given._name) is not given:
        raise ValueError(
            f"Group {given!r} is not registered, please create group with new_group API"
        )
    return given


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this process's number in a group, the world by default; -1 if it is no member."""
    found = resolve(group)
    return -1 if found is None else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return how many processes a group has, the world by default; -1 if this one is no member."""
    found = resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of a group's backend, as it was asked for.

    Raises
    ------
    ValueError
        If this process is no member.
    """
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return a group's backend for each device type: "cpu:mpi,cuda:nccl"."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    if ":" in found._backend:
        return found._backend
    return ",".join(f"{type_}:{found._backend}" for type_ in found._communicators)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the members of a group, by their rank in the world."""
    found = resolve(group)
    return [] if found is None else list(found._ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a process of the world.

    Raises
    ------
    ValueError
        If it is no member.
    """
    found = resolve(group)
    if found is None:
        raise ValueError(f"Global rank {global_rank} is not part of the group")
    return found._to_group(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of a group's member.

    Raises
    ------
    ValueError
        If the group has no such member.
    """
    found = resolve(group)
    if found is None or not 0 <= group_rank < found.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {found!r}")
    return found._to_global(group_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this process's number on its machine, which launchers put into ``LOCAL_RANK``.

    Raises
    ------
    RuntimeError
        If that is not set, and no `fallback_rank` is given.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context"
    )


def get_pg_count() -> int:
    """Return how many groups this process is a member of."""
    return len(_groups)


def is_torchelastic_launched() -> bool:
    """Return whether a launcher with torchrun's environment started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ
