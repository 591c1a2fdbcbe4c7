"""Stores: programs that are drawn say the same as torch's; threads and processes meet at them."""

import importlib.util
import os
import random
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

import tensorplug.distributed as dist

PROGRAMS = int(os.environ.get("TENSORPLUG_FUZZ", "0")) * 30 or 5
KINDS = ["hash", "tcp", "file", "prefix"]


def made(package, kind, folder):
    """Return a store of a package, tensorplug.distributed or torch.distributed."""
    if kind == "hash":
        store = package.HashStore()
    elif kind == "tcp":
        store = package.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    elif kind == "file":
        store = package.FileStore(str(folder / package.__name__), 1)
    else:
        store = package.PrefixStore("some", package.HashStore())
    store.set_timeout(timedelta(seconds=0.005))
    return store


def called(store, name, arguments):
    try:
        return getattr(store, name)(*arguments)
    except Exception as error:
        return next(
            k.__name__ for k in (TypeError, ValueError, RuntimeError) if isinstance(error, k)
        )


def drawn(rng, kind):
    """Return the name of a method and arguments; what a kind of torch's has not is left out."""
    key = rng.choice("abc")
    number = rng.choice("nm")
    value = rng.choice(["", "x", "some value\n", "ü"])
    queue = rng.choice("qr")
    choices = [
        ("set", (key, value)), ("get", (key,)), ("add", (number, rng.randint(-3, 3))), ("get", (number,)),
        ("compare_set", (key, rng.choice(["", "x"]), value)), ("check", ([key, number],)),
        ("wait", ([key], timedelta(seconds=0.005))),
    ]  # fmt: skip
    if kind != "file":  # whose delete_key is True of a key that was never there
        choices += [
            ("delete_key", (key,)),
            ("append", (key, value)), ("multi_set", (["a", "b"], ["1", value])), ("multi_get", (["a", key],)),
            ("queue_push", (queue, value)), ("queue_pop", (queue, False)), ("queue_len", (queue,)),
        ]  # fmt: skip
    return rng.choice(choices)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_programs_that_are_drawn(kind, tmp_path):
    import torch.distributed as theirs

    for program in range(PROGRAMS if kind != "file" else PROGRAMS // 5):  # whose waits are slow
        rng = random.Random(program)
        folder = tmp_path / str(program)
        folder.mkdir()
        both = [(made(dist, kind, folder), made(theirs, kind, folder))]
        if kind == "file":  # what one writes the other reads
            both.append((made(dist, kind, folder), made(theirs, kind, folder)))
        for step in range(25):
            name, arguments = drawn(rng, kind)
            mine, other = rng.choice(both)
            ours, its = called(mine, name, arguments), called(other, name, arguments)
            assert ours == its, (program, step, name, arguments)


@pytest.mark.parametrize("kind", ["tcp", "file", "prefix"])
def test_what_several_see_is_one_store(kind, tmp_path):
    """Programs of all methods, by two that share a store: each step gives what a store in memory gives."""
    for program in range(10 * PROGRAMS):
        rng = random.Random(program)
        folder = tmp_path / str(program)
        folder.mkdir()
        first, model = made(dist, kind, folder), dist.HashStore()
        both = [first, made(dist, "file", folder) if kind == "file" else first.clone()]
        model.set_timeout(timedelta(0))
        for store in both:
            store.set_timeout(timedelta(0))
        for step in range(25):
            name, arguments = drawn(rng, "all")
            store = rng.choice(both)
            ours, expected = called(store, name, arguments), called(model, name, arguments)
            assert ours == expected, (program, step, name, arguments)
            assert sorted(store.list_keys()) == sorted(model.list_keys())


@pytest.mark.parametrize("kind", KINDS)
def test_threads_count_together(kind, tmp_path):
    store = made(dist, kind, tmp_path)
    store.set_timeout(timedelta(seconds=30))
    seen = []

    def work():
        own = store.clone()
        own.set_timeout(timedelta(seconds=30))
        seen.extend(own.add("n", 1) for _ in range(20))
        own.barrier("all", 4)
        assert own.get("n") == b"80"

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 81))
    assert store.get("n") == b"80"
    assert "n" in store.list_keys()


def test_whoever_waits_is_told(tmp_path):
    for kind in KINDS:
        store = made(dist, kind, tmp_path)
        store.set_timeout(timedelta(seconds=30))
        other = store.clone()
        setting = threading.Thread(target=lambda other=other: other.set("late", "value"))
        setting.start()
        assert store.get("late") == b"value"
        setting.join()
        pushing = threading.Thread(target=lambda other=other: other.queue_push("line", "value"))
        pushing.start()
        assert store.queue_pop("line") == b"value"
        pushing.join()
        store.set_timeout(timedelta(0))
        with pytest.raises(dist.DistStoreError, match="wait timeout"):
            store.queue_pop("line")


def test_a_master_waits_for_its_workers():
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    worker = f"""
import tensorplug.distributed as dist
store = dist.TCPStore("localhost", {store.port})
store.set("from", "worker")
store.queue_push("q", b"\\x00\\xff")
"""
    subprocess.run([sys.executable, "-c", worker], check=True, timeout=60)
    assert (store.get("from"), store.queue_pop("q")) == (b"worker", b"\x00\xff")
    with pytest.raises(dist.DistQueueEmptyError):
        store.queue_pop("q", False)
    with pytest.raises(dist.DistStoreError, match="wait timeout after 10ms, keys: nothing"):
        store.wait(["nothing"], timedelta(seconds=0.01))
    with pytest.raises(dist.DistNetworkError, match="cannot listen"):
        dist.TCPStore("localhost", store.port, is_master=True)
    with pytest.raises(dist.DistStoreError, match="init/all"):  # the other does not come
        dist.TCPStore("localhost", 0, 2, is_master=True, timeout=timedelta(seconds=0.01))
    with pytest.raises(dist.DistNetworkError, match="nobody listens"):
        dist.TCPStore("localhost", 1, timeout=timedelta(seconds=0))


def test_a_file_is_for_one_at_a_time(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    store = dist.FileStore(str(tmp_path / "store"), 2)
    with (
        store._locked(),
        (tmp_path / "store").open() as file,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_worlds_meet_one_after_the_other_by_one_store():
    from tensorplug.distributed.rendezvous import meeting_point

    store = dist.HashStore()
    store.set_timeout(timedelta(0))
    for _ in range(2):
        with pytest.raises(dist.DistStoreError, match="at"):  # before the first has said where
            meeting_point(store, 1, 3)
        there = meeting_point(store, 0, 3)
        assert meeting_point(store, 2, 3) == there


def test_addresses_lead_to_stores(tmp_path, monkeypatch):
    url = f"file://{tmp_path}/store"
    store, rank, size = next(dist.rendezvous(url, 1, 2))
    assert (type(store), rank, size) == (dist.FileStore, 1, 2)
    store, rank, size = next(dist.rendezvous("tcp://localhost:0?rank=0&world_size=1"))
    assert (type(store), rank, size) == (dist.TCPStore, 0, 1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for pigeon://"):
        dist.rendezvous("pigeon://there")
    with pytest.raises(ValueError, match="rank parameter missing"):
        next(dist.rendezvous("tcp://localhost:0", world_size=1))
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("tcp", None)
    from tensorplug.distributed import rendezvous as module

    known = sys.modules[module.__module__]._handlers
    monkeypatch.setitem(known, "here", lambda url, **_: iter([(dist.HashStore(), 0, 1)]))
    assert next(dist.rendezvous("here://x"))[1:] == (0, 1)


WORLD = """
import sys, tensorplug as tp, tensorplug.distributed as dist
rank, path = int(sys.argv[1]), sys.argv[2]
for how in ({"init_method": f"file://{path}"}, {"store": dist.FileStore(path, 2)})[int(sys.argv[3]):][:1]:
    dist.init_process_group("mpi", rank=rank, world_size=2, **how)
    t = tp.ones(2) * (rank + 1)
    dist.all_reduce(t)
    assert t.tolist() == [3.0, 3.0]
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("how", [0, 1])
def test_processes_meet_by_a_file(how, tmp_path):
    import ranks

    if ranks.missing():
        pytest.skip(ranks.missing())
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORLD, str(rank), str(tmp_path / "store"), str(how)],
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in started:
        assert process.communicate(timeout=100)[1] == ""
        assert process.returncode == 0
