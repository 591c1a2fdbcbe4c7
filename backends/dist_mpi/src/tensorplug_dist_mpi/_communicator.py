"""Collectives and messages of NumPy arrays by nonblocking MPI."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from tensorplug.plugin import Communicator, DType, Rendezvous, Request

Array = np.ndarray[Any, Any]

_OPS = {
    "sum": MPI.SUM, "product": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX,
    "band": MPI.BAND, "bor": MPI.BOR, "bxor": MPI.BXOR,
}  # fmt: skip
# Of truth values, as torch has it: any, all.
_LOGICAL = {
    "sum": MPI.LOR, "product": MPI.LAND, "min": MPI.LAND, "max": MPI.LOR,
    "band": MPI.LAND, "bor": MPI.LOR, "bxor": MPI.LXOR,
}  # fmt: skip
# Messages by which members tell in what they wait; users' tags are smaller.
_ANNOUNCEMENT = 2**15
_HALVES = ("float16", "bfloat16")


def _let_be_read() -> None:
    """Wait, a second at most, until what was printed is read: at an abort `mpiexec` drops what it has not."""
    try:
        import fcntl
        import termios
    except ImportError:  # Windows
        return
    until = time.monotonic() + 1
    for output in (1, 2):
        try:
            while stat.S_ISFIFO(os.fstat(output).st_mode) and time.monotonic() < until:
                unread = fcntl.ioctl(output, termios.FIONREAD, b"\0" * 4)
                if not any(unread):
                    break
                time.sleep(0.001)
        except OSError:  # closed, or a system that does not tell
            continue


class MpiRequest(Request):
    """A request of MPI with the arrays that it reads and writes."""

    __slots__ = ("_after", "_arrays", "_request", "_status", "source")

    def __init__(
        self,
        request: MPI.Request,
        arrays: tuple[Any, ...],
        after: Callable[[], None] | None = None,
        *,
        message: bool = False,
    ) -> None:
        self.source = -1
        self._request = request
        self._arrays = arrays
        self._after = after
        self._status = MPI.Status() if message else None

    def test(self) -> bool:
        if not self._request.Test(self._status):
            return False
        if self._status is not None:
            self.source = self._status.Get_source()
        if self._after is not None:
            self._after()
            self._after = None
        self._arrays = ()
        return True


def _bytes(array: Array) -> Array:
    """Return the memory of a contiguous array as bytes: how what is only moved is sent."""
    return array.reshape(-1).view(np.uint8)


def _reducible(array: Array) -> Array:
    """Return an array's elements in a type that MPI reduces: half precision is widened, in a copy."""
    return array.astype(np.float32) if array.dtype.name in _HALVES else array


def _op(array: Array, reduction: str) -> MPI.Op:
    if array.dtype == np.bool_:
        return _LOGICAL[reduction]
    return _OPS[reduction]


class MpiCommunicator(Communicator):
    """The members of a communicator of MPI that nobody else uses."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self._told: dict[int, str] = {}
        self._telling: list[tuple[MPI.Request, bytes]] = []

    def all_reduce(self, array: Array, reduction: str) -> Request:
        wide = _reducible(array)
        request = self._comm.Iallreduce(MPI.IN_PLACE, wide, _op(array, reduction))
        return MpiRequest(request, (wide,), _narrow(array, wide))

    def reduce(self, array: Array, reduction: str, root: int) -> Request:
        wide = _reducible(array)
        if self.rank == root:
            request = self._comm.Ireduce(MPI.IN_PLACE, wide, _op(array, reduction), root)
            return MpiRequest(request, (wide,), _narrow(array, wide))
        request = self._comm.Ireduce(wide, None, _op(array, reduction), root)
        return MpiRequest(request, (wide,))

    def broadcast(self, array: Array, root: int) -> Request:
        return MpiRequest(self._comm.Ibcast(_bytes(array), root), (array,))

    def all_gather(self, output: Array, array: Array) -> Request:
        return MpiRequest(self._comm.Iallgather(_bytes(array), _bytes(output)), (array, output))

    def gather(self, output: Array | None, array: Array, root: int) -> Request:
        received = None if output is None else _bytes(output)
        return MpiRequest(self._comm.Igather(_bytes(array), received, root), (array, output))

    def scatter(self, output: Array, array: Array | None, root: int) -> Request:
        sent = None if array is None else _bytes(array)
        return MpiRequest(self._comm.Iscatter(sent, _bytes(output), root), (array, output))

    def reduce_scatter(self, output: Array, array: Array, reduction: str) -> Request:
        wide = _reducible(array)
        share = output if wide is array else np.empty(output.shape, wide.dtype)
        request = self._comm.Ireduce_scatter_block(wide, share, _op(array, reduction))
        return MpiRequest(request, (wide, share), _narrow(output, share))

    def all_to_all(
        self, output: Array, array: Array, output_counts: Sequence[int], counts: Sequence[int]
    ) -> Request:
        sent, received = _parts(array, counts), _parts(output, output_counts)
        return MpiRequest(self._comm.Ialltoallv(sent, received), (array, output))

    def send(self, array: Array, rank: int, tag: int) -> Request:
        return MpiRequest(self._comm.Isend(_bytes(array), rank, tag), (array,))

    def receive(self, array: Array, rank: int | None, tag: int) -> Request:
        source = MPI.ANY_SOURCE if rank is None else rank
        return MpiRequest(self._comm.Irecv(_bytes(array), source, tag), (array,), message=True)

    def barrier(self) -> Request:
        return MpiRequest(self._comm.Ibarrier(), ())

    def subgroup(self, ranks: Sequence[int], key: int) -> Communicator | None:
        if self.rank not in ranks:
            return None
        comm = self._comm.Create_group(
            self._comm.Get_group().Incl(list(ranks)), key % _ANNOUNCEMENT
        )
        return MpiCommunicator(comm)

    def supports(self, reduction: str, dtype: DType) -> bool:
        return dtype.itemsize > 1 or not dtype.is_floating_point  # of float8 MPI knows nothing

    def close(self) -> None:
        if not MPI.Is_finalized():
            self._comm.Free()

    def abort(self) -> None:
        _let_be_read()
        MPI.COMM_WORLD.Abort(1)

    def announce(self, text: str) -> None:
        said = text.encode()
        for other in range(self.size):
            if other != self.rank:
                self._telling.append((self._comm.Isend(said, other, _ANNOUNCEMENT), said))
        self._telling = [(request, said) for request, said in self._telling if not request.Test()]

    def announced(self) -> dict[int, str]:
        status = MPI.Status()
        while self._comm.Iprobe(MPI.ANY_SOURCE, _ANNOUNCEMENT, status):
            said = bytearray(status.Get_count(MPI.BYTE))
            self._comm.Recv(said, status.Get_source(), _ANNOUNCEMENT)
            self._told[status.Get_source()] = said.decode()
        return self._told


def _narrow(array: Array, wide: Array) -> Callable[[], None] | None:
    """Return what rounds a widened result to the array that it is for."""
    if wide is array:
        return None

    def narrow() -> None:
        array[...] = wide.astype(array.dtype)

    return narrow


def _parts(array: Array, counts: Sequence[int]) -> list[Any]:
    """Return a buffer of MPI with the bytes of each member's part."""
    sizes = [count * array.itemsize for count in counts]
    return [_bytes(array), sizes, [0, *accumulate(sizes)][:-1], MPI.BYTE]


def connect(rendezvous: Rendezvous) -> Communicator:
    """Return the communicator of the world that this process was started in."""
    world = MPI.COMM_WORLD
    if rendezvous.size is not None and (rendezvous.rank, rendezvous.size) != (
        world.rank,
        world.size,
    ):
        raise RuntimeError(
            f"this process is rank {world.rank} of {world.size} to MPI, not {rendezvous.rank} of "
            f"{rendezvous.size}; without mpiexec, processes find each other by MPICH alone, and only "
            "where nothing has started MPI before init_process_group"
        )
    own = world.Dup()
    world.Barrier()
    _unlink_shared_memory()
    return MpiCommunicator(own)


def _unlink_shared_memory() -> None:
    """Take the names from the memory that MPICH shares among processes: all have opened it.

    What is killed would leave its files in /dev/shm for good.
    """
    maps = Path("/proc/self/maps")
    if maps.exists():
        names = {
            line.split()[-1] for line in maps.read_text().splitlines() if "/mpich_shm_" in line
        }
        for name in names:
            Path(name).unlink(missing_ok=True)
