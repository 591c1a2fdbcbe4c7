"""Groups of some of the world's processes."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tensorplug.core.plugins.process_groups import Communicator

from .backends import chosen_for
from .groups import (
    GroupMember,
    ProcessGroup,
    _get_default_group,
    _groups,
    get_process_group_ranks,
    get_rank,
    resolve,
)

_numbers = itertools.count(1)
_local_numbers = itertools.count(1)
# Splits are counted by each group for itself: no other process takes part. Their keys begin here.
_SPLITS = 2**14
# So do those of groups that only their members make, which count nothing: members make them in one order.
_LOCAL = 2**13


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some processes; all of the world call it in the same order, with the same arguments.

    Parameters
    ----------
    ranks : sequence of int, optional
        The members; all by default. They are numbered in ascending order, as torch does.
    timeout : timedelta, optional
        How long a collective may take; by default as in the world.
    backend : str, optional
        One that the world has; by default all of them.
    use_local_synchronization : bool
        Only the members call it.
    pg_options, device_id
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
    if use_local_synchronization:
        if world.rank() not in members:
            return GroupMember.NON_GROUP_MEMBER
        key = _LOCAL + zlib.crc32(repr(members).encode()) % _LOCAL
        name = f"local:{next(_local_numbers)}"
    else:
        key = next(_numbers)
        name = str(key)
    wanted = dict(world._communicators)
    if backend is not None:
        served = chosen_for(backend)
        wanted = {t: c for t, c in wanted.items() if t in served}
    communicators = _communicators_of(members, wanted, key)
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    label = world._backend if backend is None else backend.lower()
    group = ProcessGroup(name, members, label, communicators, timeout or world._timeout)
    if group_desc is not None:
        group.group_desc = group_desc
    _groups[group._name] = group
    return group


def _communicators_of(
    members: Sequence[int], communicators: dict[str, Communicator], key: int
) -> dict[str, Communicator]:
    """Return some members' communicators by device type, made once where one serves several types."""
    made = {c: c.subgroup(members, key) for c in dict.fromkeys(communicators.values())}
    return {t: own for t, c in communicators.items() if (own := made[c]) is not None}


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Split a group into groups of its members; all of it call it, with the same arguments.

    Parameters
    ----------
    parent_pg : ProcessGroup, optional
        The world by default.
    split_ranks : sequence of sequence of int
        The members of each part, by their rank in the group; nobody may be in two.
    timeout : timedelta, optional
        How long a collective may take; by default as in the group.
    pg_options, backend
        Are accepted for torch's sake.
    group_desc : str, optional
        What the groups are for.

    Returns
    -------
    ProcessGroup or None
        The part that this process is in.

    Raises
    ------
    ValueError
        If a part is empty, or somebody is none of the group or in two parts.

    Examples
    --------
    ::

        halves = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    """
    parent = resolve(parent_pg)
    if parent is None:
        raise ValueError("split_group: this process is no member of the parent group")
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    listed = [rank for ranks in split_ranks for rank in ranks]
    if not all(split_ranks):
        raise ValueError("the split group cannot be empty")
    if len(set(listed)) != len(listed):
        raise ValueError(f"the split group cannot have duplicate ranks: {split_ranks}")
    if not 0 <= min(listed) <= max(listed) < parent.size():
        raise ValueError(f"split_ranks are not within 0..{parent.size() - 1}: {split_ranks}")
    parent._splits += 1
    for part, ranks in enumerate(split_ranks):
        if parent.rank() not in ranks:
            continue
        members = sorted(ranks)
        group = ProcessGroup(
            f"{parent._name}:{parent._splits}:{part}",
            [parent._to_global(rank) for rank in members],
            parent._backend,
            _communicators_of(members, parent._communicators, _SPLITS + parent._splits),
            timeout or parent._timeout,
        )
        group.group_desc = group_desc or f"{parent.group_desc}:split:{parent._splits}"
        _groups[group._name] = group
        return group
    return None


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[Any]]:
    """Split a group into groups of `group_size` neighbours; by default those of one machine.

    Parameters
    ----------
    group_size : int, optional
        How many; by default ``LOCAL_WORLD_SIZE``, which launchers set, or all.
    group : ProcessGroup, optional
        Whose processes; the world by default.
    timeout, backend, pg_options, group_desc
        As in :func:`new_group`.

    Returns
    -------
    tuple
        The group that this process is in, and all of them.

    Raises
    ------
    ValueError
        If the size does not divide that of the group.
    """
    ranks = get_process_group_ranks(group)
    size = len(ranks)
    each = int(os.environ.get("LOCAL_WORLD_SIZE", size)) if group_size is None else group_size
    if each <= 0:
        raise ValueError(f"The arg 'group_size' ({each}) must be positive")
    if size < each:
        raise ValueError(f"The arg 'group_size' ({each}) must not exceed the world size ({size})")
    if size % each:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={each}'")
    parts = [ranks[first : first + each] for first in range(0, size, each)]
    local = group is not None  # nobody else calls this
    return _enumerated(parts, timeout, backend, pg_options, group_desc, local)


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
    return _enumerated(ranks_per_subgroup_list, timeout, backend, pg_options, group_desc, False)


def _enumerated(
    parts: Sequence[Sequence[int]],
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    group_desc: str | None,
    local: bool,
) -> tuple[Any, list[Any]]:
    own, made = None, []
    for ranks in parts:
        part = new_group(ranks, timeout, backend, pg_options, local, group_desc)
        made.append(part)
        if get_rank() in ranks:
            own = part
    return own, made
