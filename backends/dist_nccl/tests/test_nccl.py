"""The backend on NCCL, against a stand-in for CuPy and NCCL on the host: no GPU has run it."""

import ctypes
import importlib
import queue
import sys
import threading
import types
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tensorplug.plugin import Rendezvous, dtype_named

SOURCE = Path(__file__).parents[1] / "src"
TYPES = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}
OPS = [np.add, np.multiply, np.maximum, np.minimum]


class Array(np.ndarray):
    """An array of the host with the attribute by which CuPy tells its address."""

    __array_priority__ = 1

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


def array(values, dtype=None):
    return np.array(values, dtype).view(Array)


def memory(address, count, kind):
    dtype = np.dtype(TYPES[kind])
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype)


class World:
    """Mailboxes between threads, each a rank."""

    def __init__(self, size):
        self.barrier = threading.Barrier(size, timeout=30)
        self.given = [None] * size
        self.mail = {(a, b): queue.Queue() for a in range(size) for b in range(size)}


class FakeComm:
    worlds: ClassVar = {}
    lock = threading.Lock()

    def __init__(self, size, identifier, rank):
        with self.lock:
            self.world = self.worlds.setdefault(tuple(identifier), World(size))
        self.rank, self.size = rank, size

    def all(self, mine):
        self.world.given[self.rank] = mine.copy()
        self.world.barrier.wait()
        given = list(self.world.given)
        self.world.barrier.wait()
        return given

    def allReduce(self, source, target, count, kind, op, stream):
        memory(target, count, kind)[...] = OPS[op].reduce(self.all(memory(source, count, kind)))

    def reduce(self, source, target, count, kind, op, root, stream):
        result = OPS[op].reduce(self.all(memory(source, count, kind)))
        if self.rank == root:
            memory(target, count, kind)[...] = result

    def broadcast(self, source, target, count, kind, root, stream):
        memory(target, count, kind)[...] = self.all(memory(source, count, kind))[root]

    def allGather(self, source, target, count, kind, stream):
        memory(target, count * self.size, kind)[...] = np.concatenate(
            self.all(memory(source, count, kind))
        )

    def reduceScatter(self, source, target, count, kind, op, stream):
        whole = OPS[op].reduce(self.all(memory(source, count * self.size, kind)))
        memory(target, count, kind)[...] = whole[self.rank * count : (self.rank + 1) * count]

    def send(self, source, count, kind, peer, stream):
        self.world.mail[self.rank, peer].put(memory(source, count, kind).copy())

    def recv(self, target, count, kind, peer, stream):
        memory(target, count, kind)[...] = self.world.mail[peer, self.rank].get(timeout=30)


@pytest.fixture
def ours(monkeypatch):
    """The module, importing the stand-in."""
    identifiers = iter(range(1, 1000))
    event = types.SimpleNamespace(done=True)
    stream = types.SimpleNamespace(
        ptr=0, record=lambda: event, wait_event=lambda event: None, synchronize=lambda: None
    )
    nccl = types.ModuleType("cupy.cuda.nccl")
    nccl.NcclCommunicator, nccl.groupStart, nccl.groupEnd = FakeComm, lambda: None, lambda: None
    nccl.get_unique_id = lambda: (-3, next(identifiers), *[0] * 126)
    cuda = types.ModuleType("cupy.cuda")
    cuda.nccl, cuda.Stream, cuda.get_current_stream = (
        nccl,
        lambda non_blocking: stream,
        lambda: stream,
    )
    cupy = types.ModuleType("cupy")
    cupy.cuda, cupy.uint8, cupy.asnumpy = cuda, np.uint8, np.asarray
    cupy.zeros = lambda shape, dtype: array(np.zeros(shape), dtype)
    cupy.asarray = lambda values, dtype: np.frombuffer(bytes(values), dtype)
    for module in (cupy, cuda, nccl):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(str(SOURCE))
    for name in [n for n in sys.modules if n.startswith("tensorplug_dist_nccl")]:
        monkeypatch.delitem(sys.modules, name)
    yield importlib.import_module("tensorplug_dist_nccl._communicator")
    for name in [n for n in sys.modules if n.startswith("tensorplug_dist_nccl")]:
        sys.modules.pop(name)
    FakeComm.worlds.clear()


def ranks(ours, size, program):
    """Run a function of a communicator on each rank, in a thread; return what each returned."""
    identifier = (size, *[7] * 127)
    results = [None] * size

    def go(rank):
        comm = ours.nccl.NcclCommunicator(size, identifier, rank)
        results[rank] = program(ours.NcclCommunicator(comm, rank, size))

    threads = [threading.Thread(target=go, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", "float16"])
def test_collectives(ours, size, dtype):
    def give(rank, count=3):
        return array((np.arange(count) + rank) % 3, dtype)

    def program(comm):
        rank, out = comm.rank, {}
        op = "max" if dtype == "bool" else "sum"
        a = give(rank)
        assert comm.all_reduce(a, op).test()
        out["all_reduce"] = a
        out["broadcast"] = b = give(rank)
        comm.broadcast(b, size - 1)
        out["all_gather"] = g = array(np.zeros(3 * size), dtype)
        comm.all_gather(g, give(rank))
        out["gather"] = h = array(np.zeros(3 * size), dtype)
        comm.gather(h if rank == 0 else None, give(rank), 0)
        out["scatter"] = s = array(np.zeros(3), dtype)
        comm.scatter(s, give(1, 3 * size) if rank == 0 else None, 0)
        out["reduce_scatter"] = r = array(np.zeros(3), dtype)
        comm.reduce_scatter(r, give(rank, 3 * size), op)
        out["all_to_all"] = t = array(np.zeros(3 * size), dtype)
        comm.all_to_all(t, give(rank, 3 * size), [3] * size, [3] * size)
        out["reduce"] = q = give(rank)
        comm.reduce(q, op, 0)
        comm.barrier()
        return out

    combine = np.logical_or.reduce if dtype == "bool" else np.add.reduce
    got = ranks(ours, size, program)
    given = [np.asarray(give(rank)) for rank in range(size)]
    long = [np.asarray(give(rank, 3 * size)) for rank in range(size)]
    for rank, out in enumerate(got):
        share = slice(3 * rank, 3 * rank + 3)
        expected = {
            "all_reduce": combine(given),
            "broadcast": given[-1],
            "all_gather": np.concatenate(given),
            "gather": np.concatenate(given) if rank == 0 else np.zeros(3 * size),
            "scatter": np.asarray(give(1, 3 * size))[share],
            "reduce_scatter": combine(long)[share],
            "all_to_all": np.concatenate([part[share] for part in long]),
            "reduce": combine(given) if rank == 0 else given[rank],
        }
        for name, value in expected.items():
            np.testing.assert_array_equal(np.asarray(out[name]), value, err_msg=f"{name} on {rank}")


def test_messages_and_subgroups(ours):
    def program(comm):
        a = array([0.0, 0.0])
        with comm.batch():
            if comm.rank == 0:
                request = comm.send(array([1.0, 2.0]), 2, 0)
            if comm.rank == 2:
                request = comm.receive(a, 0, 0)
                assert request.source == 0
        assert comm.rank == 1 or request.test()
        part = comm.subgroup([0, 2], 1)
        if part is None:
            return a.tolist(), None
        b = array([float(comm.rank)])
        part.all_reduce(b, "sum")
        return a.tolist(), (part.rank, part.size, b.tolist())

    got = ranks(ours, 3, program)
    assert got == [([0, 0], (0, 2, [2.0])), ([0, 0], None), ([1, 2], (1, 2, [2.0]))]


def test_what_nccl_has_not_is_refused(ours):
    comm = ours.NcclCommunicator(None, 0, 2)
    supported = [
        (op, name)
        for op in ("sum", "product", "min", "band")
        for name in ("float32", "bfloat16", "complex64", "int16", "bool")
        if comm.supports(op, dtype_named(name))
    ]
    assert supported == [
        ("sum", "float32"), ("sum", "bfloat16"), ("sum", "complex64"), ("sum", "bool"),
        ("product", "float32"), ("product", "bfloat16"), ("product", "bool"),
        ("min", "float32"), ("min", "bfloat16"), ("min", "bool"), ("band", "bool"),
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="not from any"):
        comm.receive(array([0.0]), None, 0)


def test_the_identifier_goes_from_rank_0_to_all(ours):
    import socket

    from tensorplug_dist_nccl._meeting import exchange

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1] - 1
    got = {}

    def go(rank):
        place = Rendezvous(rank, 3, "localhost", port, timedelta(seconds=30))
        got[rank] = exchange(place, (1, 2, 3) if rank == 0 else None)

    threads = [threading.Thread(target=go, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == dict.fromkeys(range(3), (1, 2, 3))


def test_the_plugin_says_what_is_missing(ours, monkeypatch):
    plugin = importlib.import_module("tensorplug_dist_nccl").plugin
    (backend,) = plugin.tensorplug_process_groups()
    assert backend.name == "nccl"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "CuPy is not installed" in backend.unavailable_reason()
