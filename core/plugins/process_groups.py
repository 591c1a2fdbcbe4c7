"""What a plugin supplies so that processes can exchange arrays: a backend of process groups.

``tensorplug.distributed`` does what is common to all of them: it checks arguments, copies tensors that are
not contiguous, divides for averages, counts, waits and times out. A backend moves and reduces memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..device.dtypes import DType


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Where the processes of a world meet.

    Attributes
    ----------
    rank, size : int or None
        This process's number, and how many there are; None where the backend has to know it.
    address : str
        Host of rank 0, or "" if none is given.
    port : int
        Port on which rank 0 may listen, or 0.
    timeout : timedelta
        How long to wait for the others.
    """

    rank: int | None = None
    size: int | None = None
    address: str = ""
    port: int = 0
    timeout: timedelta = timedelta(minutes=30)


class Request(ABC):
    """A collective, or a message, that is under way; it keeps its arrays alive.

    Attributes
    ----------
    source : int
        Of a message that was received, the rank in the group that it came from; else -1.
    """

    source: int = -1

    @abstractmethod
    def test(self) -> bool:
        """Advance it, without waiting, and return whether it is complete; raise what it failed with."""


class Communicator(ABC):
    """The members of one process group, for one device type.

    Arrays are the device runtime's own, contiguous, and stay as they are until the request is complete. What
    is only read is not written to, and shares no memory with what is.
    Ranks are those within the group. All members start the same collectives in the same order, so a
    method may start what it does but may not wait for it.

    Attributes
    ----------
    rank, size : int
        This process's number in the group, and how many members it has.
    """

    rank: int
    size: int

    @abstractmethod
    def all_reduce(self, array: Any, reduction: str) -> Request:
        """Replace `array` on each by the reduction over all.

        That is one of "sum", "product", "min", "max", "band", "bor" and "bxor".
        """

    @abstractmethod
    def reduce(self, array: Any, reduction: str, root: int) -> Request:
        """As :meth:`all_reduce`, for `root` alone; the others' arrays stay as they are."""

    @abstractmethod
    def broadcast(self, array: Any, root: int) -> Request:
        """Replace `array` by that of `root`."""

    @abstractmethod
    def all_gather(self, output: Any, array: Any) -> Request:
        """Write everybody's `array`, one after the other, to `output`, ``size`` times as large."""

    @abstractmethod
    def gather(self, output: Any | None, array: Any, root: int) -> Request:
        """As :meth:`all_gather`, for `root` alone; the others have None as `output`."""

    @abstractmethod
    def scatter(self, output: Any, array: Any | None, root: int) -> Request:
        """Write to `output` this member's share of the `array` of `root`; the others have None."""

    @abstractmethod
    def reduce_scatter(self, output: Any, array: Any, reduction: str) -> Request:
        """Write to `output` this member's share of the reduction over all `array`."""

    @abstractmethod
    def all_to_all(
        self, output: Any, array: Any, output_counts: Sequence[int], counts: Sequence[int]
    ) -> Request:
        """Send ``counts[i]`` elements of `array` to member i, write ``output_counts[i]`` from it."""

    @abstractmethod
    def send(self, array: Any, rank: int, tag: int) -> Request:
        """Send `array` to a member; complete once the array may be written to."""

    @abstractmethod
    def receive(self, array: Any, rank: int | None, tag: int) -> Request:
        """Fill `array` by what a member, or any, sends."""

    def batch(self) -> AbstractContextManager[Any]:
        """Return a context; messages that are started within may wait for each other in any order."""
        return nullcontext()

    @abstractmethod
    def barrier(self) -> Request:
        """Be complete once each member has called it."""

    @abstractmethod
    def subgroup(self, ranks: Sequence[int], key: int) -> Communicator | None:
        """Return a communicator of some members, in this order; None for the others.

        Only those members are sure to call it, with the same `key`, which no other group has.
        """

    def supports(self, reduction: str, dtype: DType) -> bool:
        """Return whether elements of a dtype can be reduced so."""
        return True

    def close(self) -> None:
        """Give back what it holds; no request is under way."""

    def abort(self) -> None:
        """End all processes of the world as well as can be: this one has failed."""

    # --- for messages that tell who is missing ---

    def announce(self, text: str) -> None:
        """Let the other members know in what this one waits; must not wait."""

    def announced(self) -> dict[int, str] | None:
        """Return the last text that each other member announced; None if nobody can know."""
        return None


class ProcessGroupBackend(ABC):
    """A way for processes to exchange arrays, by which process groups are made.

    A plugin hands instances to ``tensorplug_process_groups``. The entry point of its package is named
    ``distributed.<name>``: it is loaded when process groups are asked for.

    Attributes
    ----------
    name : str
        As in ``init_process_group("name")``.
    device_types : frozenset of str
        The device types whose arrays it takes.
    aliases : tuple of str
        Other names of backends in whose place it serves, where none of that name is installed.
    priority : int
        Of several for one name, or for one device type where no name is given, the highest serves.
    """

    name: str
    device_types: frozenset[str]
    aliases: tuple[str, ...] = ()
    priority: int = 0

    def unavailable_reason(self) -> str | None:
        """Return why it cannot be used (library, hardware), or None if it can."""
        return None

    def launched(self) -> tuple[int, int] | None:
        """Return rank and size if this process was started as one of a world that this backend knows."""
        return None

    @abstractmethod
    def connect(self, rendezvous: Rendezvous) -> Communicator:
        """Return the communicator of the whole world."""
