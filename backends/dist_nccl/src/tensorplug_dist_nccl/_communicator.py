"""Collectives and messages of CuPy arrays by NCCL, on a stream of their own."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorplug.plugin import Communicator, DType, Rendezvous, Request

from ._meeting import exchange

# CuPy's own annotations cover a part of it, so it counts as untyped, installed or not.
cupy: Any = importlib.import_module("cupy")
nccl: Any = importlib.import_module("cupy.cuda.nccl")

# ncclDataType_t and ncclRedOp_t, as nccl.h numbers them.
_BYTE = 1
_TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6,
    "float32": 7, "float64": 8, "bfloat16": 9, "bool": 1,
}  # fmt: skip
_OPS = {"sum": 0, "product": 1, "max": 2, "min": 3}
# Of truth values, which are bytes 0 and 1, as torch has it: any, all.
_LOGICAL = {"sum": 2, "max": 2, "bor": 2, "product": 3, "min": 3, "band": 3}
_REAL = {"complex64": ("float32", 2), "complex128": ("float64", 2)}
_IDENTIFIER = 128  # bytes of an ncclUniqueId


class NcclRequest(Request):
    """What is complete when an event of the stream has come; keeps its arrays until then."""

    def __init__(self, event: Any, arrays: tuple[Any, ...], source: int = -1) -> None:
        self.event = event
        self._arrays = arrays
        self.source = source

    def test(self) -> bool:
        if not self.event.done:
            return False
        self._arrays = ()
        return True


def _address(array: Any, elements: int = 0) -> int:
    return int(array.data.ptr) + elements * int(array.dtype.itemsize)


class NcclCommunicator(Communicator):
    """The members of a communicator of NCCL; each has the GPU that was current when it joined."""

    def __init__(self, comm: Any, rank: int, size: int) -> None:
        self._comm = comm
        self.rank, self.size = rank, size
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._batch: list[NcclRequest] | None = None

    @contextmanager
    def _under_way(self) -> Generator[int]:
        """Return the stream for NCCL, which waits for what the program has queued until now."""
        self._stream.wait_event(cupy.cuda.get_current_stream().record())
        yield int(self._stream.ptr)

    def _request(self, *arrays: Any, source: int = -1) -> Request:
        request = NcclRequest(None, arrays, source)
        if self._batch is None:
            request.event = self._stream.record()
        else:
            self._batch.append(request)  # it is queued when the batch ends
        return request

    @contextmanager
    def batch(self) -> Generator[None]:
        started: list[NcclRequest] = []
        self._batch = started
        nccl.groupStart()
        try:
            yield
        finally:
            nccl.groupEnd()
            self._batch = None
            event = self._stream.record()
            for request in started:
                request.event = event

    def supports(self, reduction: str, dtype: DType) -> bool:
        if dtype.name == "bool":
            return reduction in _LOGICAL
        if dtype.name in _REAL:
            return reduction == "sum"  # NCCL knows no complex numbers
        return dtype.name in _TYPES and reduction in _OPS

    def _told(self, array: Any, reduction: str) -> tuple[int, int, int]:
        """Return count, type and operation for NCCL."""
        name = str(array.dtype.name)
        real, parts = _REAL.get(name, (name, 1))
        op = (_LOGICAL if name == "bool" else _OPS)[reduction]
        return int(array.size) * parts, _TYPES[real], op

    def all_reduce(self, array: Any, reduction: str) -> Request:
        count, kind, op = self._told(array, reduction)
        with self._under_way() as stream:
            self._comm.allReduce(_address(array), _address(array), count, kind, op, stream)
        return self._request(array)

    def reduce(self, array: Any, reduction: str, root: int) -> Request:
        count, kind, op = self._told(array, reduction)
        with self._under_way() as stream:
            self._comm.reduce(_address(array), _address(array), count, kind, op, root, stream)
        return self._request(array)

    def broadcast(self, array: Any, root: int) -> Request:
        with self._under_way() as stream:
            self._comm.broadcast(
                _address(array), _address(array), int(array.nbytes), _BYTE, root, stream
            )
        return self._request(array)

    def all_gather(self, output: Any, array: Any) -> Request:
        with self._under_way() as stream:
            self._comm.allGather(
                _address(array), _address(output), int(array.nbytes), _BYTE, stream
            )
        return self._request(output, array)

    def reduce_scatter(self, output: Any, array: Any, reduction: str) -> Request:
        count, kind, op = self._told(output, reduction)
        with self._under_way() as stream:
            self._comm.reduceScatter(_address(array), _address(output), count, kind, op, stream)
        return self._request(output, array)

    def gather(self, output: Any | None, array: Any, root: int) -> Request:
        sent = [int(array.size) if member == root else 0 for member in range(self.size)]
        taken = [int(array.size) if output is not None else 0] * self.size
        return self._exchange(output, array, taken, sent)

    def scatter(self, output: Any, array: Any | None, root: int) -> Request:
        taken = [int(output.size) if member == root else 0 for member in range(self.size)]
        sent = [int(output.size) if array is not None else 0] * self.size
        return self._exchange(output, array, taken, sent)

    def all_to_all(
        self, output: Any, array: Any, output_counts: Sequence[int], counts: Sequence[int]
    ) -> Request:
        return self._exchange(output, array, output_counts, counts)

    def _exchange(
        self, output: Any | None, array: Any | None, taken: Sequence[int], sent: Sequence[int]
    ) -> Request:
        """Send consecutive parts of `array` to the members, fill those of `output` from them: one group."""
        with self._under_way() as stream:
            nccl.groupStart()
            begin = start = 0
            for member in range(self.size):
                if sent[member] and array is not None:
                    size = sent[member] * int(array.dtype.itemsize)
                    self._comm.send(_address(array, begin), size, _BYTE, member, stream)
                if taken[member] and output is not None:
                    size = taken[member] * int(output.dtype.itemsize)
                    self._comm.recv(_address(output, start), size, _BYTE, member, stream)
                begin += sent[member]
                start += taken[member]
            nccl.groupEnd()
        return self._request(output, array)

    def send(self, array: Any, rank: int, tag: int) -> Request:
        with self._under_way() as stream:
            self._comm.send(_address(array), int(array.nbytes), _BYTE, rank, stream)
        return self._request(array)

    def receive(self, array: Any, rank: int | None, tag: int) -> Request:
        if rank is None:
            raise RuntimeError("NCCL receives from a rank that is named, not from any")
        with self._under_way() as stream:
            self._comm.recv(_address(array), int(array.nbytes), _BYTE, rank, stream)
        return self._request(array, source=rank)

    def barrier(self) -> Request:
        return self.all_reduce(cupy.zeros(1, cupy.uint8), "sum")

    def subgroup(self, ranks: Sequence[int], key: int) -> Communicator | None:
        if self.rank not in ranks:
            return None
        place = ranks.index(self.rank)
        word = cupy.zeros(_IDENTIFIER, cupy.uint8)
        if place == 0:
            word[:] = cupy.asarray(bytearray(_to_bytes(nccl.get_unique_id())), dtype=cupy.uint8)
            for other in ranks[1:]:
                self.send(word, other, 0)
        else:
            self.receive(word, ranks[0], 0)
        self._stream.synchronize()
        identifier = _from_bytes(bytes(cupy.asnumpy(word)))
        return NcclCommunicator(
            nccl.NcclCommunicator(len(ranks), identifier, place), place, len(ranks)
        )

    def close(self) -> None:
        self._stream.synchronize()
        self._comm.destroy()

    def abort(self) -> None:
        self._comm.abort()


def _to_bytes(identifier: Sequence[int]) -> bytes:
    """Return NCCL's identifier, which CuPy has as a tuple of signed characters, as bytes."""
    return bytes(number % 256 for number in identifier)


def _from_bytes(word: bytes) -> tuple[int, ...]:
    return tuple(number - 256 if number > 127 else number for number in word)


def connect(rendezvous: Rendezvous) -> Communicator:
    """Return the communicator of the world; this process's GPU is the current one."""
    identifier = exchange(rendezvous, nccl.get_unique_id() if rendezvous.rank == 0 else None)
    rank, size = rendezvous.rank or 0, rendezvous.size or 1
    return NcclCommunicator(nccl.NcclCommunicator(size, identifier, rank), rank, size)
