"""Process groups: the world, groups of some of its processes, and who is who in them."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tensorplug.core.plugins import discovery, manager
from tensorplug.core.plugins.entry_points import DISTRIBUTED, installed
from tensorplug.core.plugins.installation import install_command
from tensorplug.core.plugins.process_groups import Communicator, ProcessGroupBackend, Rendezvous

from .errors import DistBackendError
from .work import Work

default_pg_timeout = timedelta(minutes=30)
log = logging.getLogger(__name__)

# What installs a backend that is asked for by name and not there.
_EXTRAS = {"mpi": "mpi", "gloo": "mpi", "nccl": "nccl"}


class Backend(str):
    """The name of a backend of process groups, in small letters.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.Backend("GLOO")
    'gloo'
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    default_device_backend_map: ClassVar[dict[str, str]] = {}
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        """Return the name in small letters."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


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
        self._pending: set[Work] = set()
        self._broken = False
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


#: Each group of this process, with the name of its backend.
_groups: dict[str, ProcessGroup] = {}
_numbers = itertools.count(1)
_backends: dict[str, ProcessGroupBackend] = {}


# --- backends ---


def _find(name: str) -> ProcessGroupBackend | None:
    """Return the backend that serves under a name: its own before an alias."""
    discovery.load_device(DISTRIBUTED)
    known = [b for b in manager.process_group_backends() if b.unavailable_reason() is None]
    own = [backend for backend in known if backend.name == name]
    return next(iter(own or [backend for backend in known if name in backend.aliases]), None)


def _required(name: str) -> ProcessGroupBackend:
    found = _find(name)
    if found is not None:
        if found.name != name:
            log.info("process groups of %r are served by %r", name, found.name)
        return found
    reasons = [
        f"{backend.name}: {reason}"
        for backend in manager.process_group_backends()
        if (backend.name == name or name in backend.aliases)
        and (reason := backend.unavailable_reason()) is not None
    ]
    reasons += [
        f"{entry.found.label}: {entry.reason}"
        for entry in discovery.quarantined()
        if entry.found.device == DISTRIBUTED
    ]
    if reasons:
        raise RuntimeError(f"process groups of {name!r} cannot be used: {'; '.join(reasons)}")
    if name in _EXTRAS:
        command = install_command(f"tensorplug[{_EXTRAS[name]}]")
        raise RuntimeError(
            f"no plugin brings process groups of {name!r}; install one with: {command}"
        )
    names = sorted({backend.name for backend in manager.process_group_backends()}) or ["none"]
    raise ValueError(f"Unknown backend type {name!r}; installed are: {', '.join(names)}")


def is_available() -> bool:
    """Return whether process groups can be had: whether a plugin that brings them is installed.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.is_available() or "pip install 'tensorplug[mpi]'"  # doctest: +SKIP
    True
    """
    return bool(
        manager.process_group_backends()
        or any(found.device == DISTRIBUTED and found.is_current for found in installed())
    )


def is_backend_available(backend: str) -> bool:
    """Return whether process groups of this name can be had.

    Examples
    --------
    >>> import tensorplug.distributed as dist
    >>> dist.is_backend_available("carrier_pigeon")
    False
    """
    return _find(backend.lower()) is not None


def is_mpi_available() -> bool:
    """Return whether process groups of "mpi" can be had."""
    return is_backend_available("mpi")


def is_nccl_available() -> bool:
    """Return whether process groups of "nccl" can be had."""
    return is_backend_available("nccl")


def is_gloo_available() -> bool:
    """Return whether process groups of "gloo" can be had; MPI serves them."""
    return is_backend_available("gloo")


def is_ucc_available() -> bool:
    """Return whether process groups of "ucc" can be had."""
    return is_backend_available("ucc")


def is_xccl_available() -> bool:
    """Return whether process groups of "xccl" can be had."""
    return is_backend_available("xccl")


def _chosen(backend: str | None) -> dict[str, tuple[str, ProcessGroupBackend]]:
    """Return the backend for each device type, with the name it was asked for by."""
    if backend is None:
        discovery.load_device(DISTRIBUTED)
        chosen: dict[str, tuple[str, ProcessGroupBackend]] = {}
        for found in manager.process_group_backends():
            if found.unavailable_reason() is None:
                for type_ in sorted(found.device_types):
                    chosen.setdefault(type_, (found.name, found))
        if not chosen:
            _required("mpi")
        return chosen
    chosen = {}
    for part in backend.lower().split(","):
        type_, colon, name = part.strip().partition(":")
        found = _required(name if colon else type_)
        if colon and type_ not in found.device_types:
            raise ValueError(
                f"process groups of {name!r} take tensors of {', '.join(sorted(found.device_types))}, "
                f"not of {type_!r}"
            )
        for served in [type_] if colon else sorted(found.device_types):
            chosen[served] = (name if colon else type_, found)
    return chosen


# --- the world ---


def _from_environment(name: str) -> int:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set. Start the program with `mpiexec -n N` or "
            "`python -m tensorplug.distributed.run --nproc-per-node N`"
        )
    return int(value)


def _rendezvous(
    init_method: str | None,
    world_size: int,
    rank: int,
    backend: ProcessGroupBackend,
    timeout: timedelta,
) -> Rendezvous:
    launched = backend.launched()
    method = urlsplit(init_method or "env://")
    if method.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {method.scheme}://")
    if launched is not None:
        if rank >= 0 and world_size > 0 and (rank, world_size) != launched:
            raise ValueError(
                f"init_process_group was given rank {rank} of {world_size}, but this process was "
                f"started as rank {launched[0]} of {launched[1]}"
            )
        return Rendezvous(*launched, timeout=timeout)
    if method.scheme == "file":
        raise RuntimeError(
            "processes that nobody started together meet at tcp:// addresses, not in files; "
            'init_method="tcp://localhost:29500" does the same'
        )
    if method.scheme == "tcp":
        if rank < 0 or world_size < 1:
            missing = "rank" if rank < 0 else "size"
            raise ValueError(
                f"Error initializing torch.distributed using tcp:// rendezvous: {missing} parameter missing"
            )
        return Rendezvous(rank, world_size, method.hostname or "", method.port or 0, timeout)
    rank = _from_environment("RANK") if rank < 0 else rank
    size = _from_environment("WORLD_SIZE") if world_size < 1 else world_size
    if size == 1:
        return Rendezvous(rank, size, timeout=timeout)
    port = _from_environment("MASTER_PORT")
    return Rendezvous(rank, size, os.environ.get("MASTER_ADDR", ""), port, timeout)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
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
        "env://", the default, or "tcp://host:port" with `world_size` and `rank`.
    timeout : timedelta, optional
        How long a collective may take; 30 minutes by default.
    world_size, rank : int
        How many processes there are, and which this is.
    store, group_name, pg_options, device_id
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
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}"
        )
    limit = timeout or default_pg_timeout
    chosen = _chosen(backend)
    communicators: dict[str, Communicator] = {}
    made: dict[int, Communicator] = {}
    for type_, (_, found) in chosen.items():
        if id(found) not in made:
            where = _rendezvous(init_method, world_size, rank, found, limit)
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
        for communicator in world._communicators.values():
            communicator.abort()


def _at_exit() -> None:
    """Leaving in good order takes all processes; after a failure it would not come to an end."""
    if any(left._broken for left in _groups.values()):
        _abort()


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
            for communicator in {id(c): c for c in left._communicators.values()}.values():
                communicator.close()
    if chosen is GroupMember.WORLD:
        GroupMember.WORLD = None


# --- groups within it ---


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some processes; all of the world call it, with the same arguments.

    Parameters
    ----------
    ranks : sequence of int, optional
        The members; all by default. They are numbered in ascending order, as torch does.
    timeout : timedelta, optional
        How long a collective may take; by default as in the world.
    backend : str, optional
        One that the world has; by default all of them.
    pg_options, use_local_synchronization, device_id
        Are accepted for torch's sake.
    group_desc : str, optional
        What the group is for.

    Returns
    -------
    ProcessGroup or ``GroupMember.NON_GROUP_MEMBER``
        The latter where this process is no member.

    Raises
    ------
    ValueError
        If `ranks` has one twice, or one that the world has not.
    """
    world = _get_default_group()
    members = list(range(world.size())) if ranks is None else sorted(int(rank) for rank in ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: ranks has duplicates: {list(ranks or ())}")
    if members and not 0 <= members[0] <= members[-1] < world.size():
        raise ValueError(
            f"The new group's rank should be within the world_size set by init_process_group, "
            f"which is {world.size()}; got {members}"
        )
    if len(members) > world.size() or not members:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group, and at least 1"
        )
    key = next(_numbers)
    wanted = dict(world._communicators)
    if backend is not None:
        served = _chosen(backend)
        wanted = {t: c for t, c in wanted.items() if t in served}
    made: dict[int, Communicator | None] = {}
    for communicator in wanted.values():
        if id(communicator) not in made:
            made[id(communicator)] = communicator.subgroup(members, key)
    if world._to_global(world.rank()) not in members:
        return GroupMember.NON_GROUP_MEMBER
    communicators = {t: own for t, c in wanted.items() if (own := made[id(c)]) is not None}
    label = world._backend if backend is None else backend.lower()
    group = ProcessGroup(str(key), members, label, communicators, timeout or world._timeout)
    if group_desc is not None:
        group.group_desc = group_desc
    _groups[group._name] = group
    return group


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[Any]]:
    """Split the world into groups of `group_size` neighbours; by default those of one machine.

    Returns
    -------
    tuple
        The group that this process is in, and all of them.

    Raises
    ------
    ValueError
        If the size does not divide that of the world.
    """
    size = get_world_size()
    each = int(os.environ.get("LOCAL_WORLD_SIZE", size)) if group_size is None else group_size
    if each <= 0:
        raise ValueError(f"The arg 'group_size' ({each}) must be positive")
    if size < each:
        raise ValueError(f"The arg 'group_size' ({each}) must not exceed the world size ({size})")
    if size % each:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={each}'")
    parts = [list(range(first, first + each)) for first in range(0, size, each)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of ranks; no rank may be in two.

    Returns
    -------
    tuple
        The group that this process is in, or None, and all of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    listed = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(listed)) != len(listed):
        raise ValueError("The arg 'ranks_per_subgroup_list' has a rank in two subgroups")
    own, made = None, []
    for ranks in ranks_per_subgroup_list:
        part = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(part)
        if get_rank() in ranks:
            own = part
    return own, made


# --- who is who ---


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
