"""What every collective and message begins and ends with: its group found, its tensors checked, its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.plugins.process_groups import Request

from .buffers import check_alike, check_reduction, check_tensor, check_tensors
from .debug import DebugLevel, compare, get_debug_level
from .errors import DistBackendError
from .groups import ProcessGroup, log, resolve
from .reduce_op import Reduction, parse
from .work import Work

# Beyond this number of pieces of work that nobody waits for, completed ones are let go of.
_UNWATCHED = 64


def member(group: ProcessGroup | None, what: str) -> ProcessGroup | None:
    """Return the group of a collective, None with a note where this process is no member of it."""
    found = resolve(group)
    if found is None:
        log.info("%s on a process that is no member of the group does nothing", what)
    return found


def rank_in(
    found: ProcessGroup,
    rank: int | None,
    group_rank: int | None,
    name: str,
    default: int | None = None,
) -> int:
    """Return a process's rank in the group, given as its rank in the world or in the group."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        if not 0 <= group_rank < found.size():
            raise ValueError(f"group_{name} {group_rank} is not within 0..{found.size() - 1}")
        return group_rank
    if rank is None:
        rank = default
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return found._to_group(rank)


class Call:
    """A collective or message that this process, a member of its group, is about to start."""

    __slots__ = ("communicator", "group", "size", "what")

    def __init__(self, what: str, group: ProcessGroup, tensor: Tensor | None) -> None:
        self.what = what
        self.group = group
        self.size = group.size()
        self.communicator = (
            next(iter(group._communicators.values()))
            if tensor is None
            else group._communicator(tensor.device.type)
        )

    def check_length(self, tensors: Sequence[object], name: str) -> None:
        """Refuse a list that has not a tensor for each process."""
        if len(tensors) != self.size:
            raise RuntimeError(
                f"{self.what}: {name} has {len(tensors)} tensors, the group {self.size} processes"
            )

    def check_list(self, tensors: Sequence[Tensor], tensor: Tensor, name: str) -> None:
        """Refuse a list that has not a tensor for each process, each as large as `tensor`."""
        self.check_length(check_tensors(tensors, name), name)
        check_alike(tensor, tensors, self.what)
        for number, other in enumerate(tensors):
            if tuple(other.shape) != tuple(tensor.shape):
                raise RuntimeError(
                    f"{self.what}: {name}[{number}] has shape {tuple(other.shape)}, the tensor "
                    f"{tuple(tensor.shape)}"
                )

    def reduction(self, op: Any, tensor: Tensor) -> tuple[Reduction, str]:
        """Return a reduction, and what the backend is told to do for it."""
        reduction = parse(op)
        return reduction, check_reduction(reduction, tensor, self.what, self.communicator)

    def start(
        self,
        begin: Callable[[], Request],
        finish: Callable[[], None] | None,
        result: Sequence[Any],
        async_op: bool,
        alike: Sequence[Any] = (),
        *,
        message: bool = False,
    ) -> Work | None:
        """Start it; wait for it unless it is to go on by itself."""
        group, number = self.group, 0
        if not message:
            if get_debug_level() is DebugLevel.DETAIL:
                compare(group, self.what, alike, self.communicator)
            group._number += 1
            number = group._number
        if len(group._pending) >= _UNWATCHED:
            for other in list(group._pending):
                other.is_completed()
        try:
            request = begin()
        except RuntimeError as error:
            raise DistBackendError(f"{self.what} of {group.name()!r} failed: {error}") from error
        work = Work(group, self.what, request, self.communicator, finish, result, number)
        group._pending.add(work)
        if group._coalesced is not None:
            group._coalesced.append(work)
            return work if async_op else None
        if async_op:
            return work
        work.wait()
        return None


def opened(what: str, group: ProcessGroup | None, **tensors: Any) -> Call | None:
    """Return a call whose tensors, by their parameters' names, are tensors alike in dtype and device.

    A name that ends in "_list" is that of a list. None on a process that is no member of the group.
    """
    given: list[Tensor] = []
    for name, value in tensors.items():
        if name.endswith("_list"):
            given += check_tensors(value, name)
        else:
            given.append(check_tensor(value, name))
    found = member(group, what)
    if found is None:
        return None
    if given:
        check_alike(given[0], given[1:], what)
    return Call(what, found, given[0] if given else None)
