"""The loader with worker processes."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import worker_datasets as here

import tensorplug as tp
from tensorplug.core.tensor import shared_memory
from tensorplug.core.tensor.host import numpy_state
from tensorplug.data import DataLoader, shared

LINUX = sys.platform == "linux"
HERE = Path(__file__).parent


def lists(batches):
    return [batch.tolist() for batch in batches]


def same(a, b):
    if isinstance(a, tp.Tensor):
        return a.dtype is b.dtype and tp.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# --- the same batches as in one process ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "shuffle"),
    [("fork", False), ("fork", True), ("spawn", True), ("forkserver", True)],
)
def test_the_batches_are_those_of_one_process(context, shuffle):
    epochs = []
    for workers in (0, 2):
        tp.manual_seed(5)
        options = {"multiprocessing_context": context} if workers else {}
        loader = DataLoader(
            here.Structured(), batch_size=3, shuffle=shuffle, num_workers=workers, **options
        )
        epochs.append([*loader, *loader])
    assert len(epochs[0]) == len(epochs[1]) == 14
    assert all(same(a, b) for a, b in zip(*epochs, strict=True))
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_large_batches_are_in_shared_memory(context):
    loader = DataLoader(
        here.Structured(), batch_size=4, num_workers=1, multiprocessing_context=context
    )
    for batch in loader:
        assert batch["image"].is_shared()
        batch["image"].add_(1)  # and belong to whoever gets them
        assert batch["image"][:, 0, 0].tolist() == [label + 1 for label in batch["label"].tolist()]
    small = DataLoader(here.Structured(side=1), num_workers=1, multiprocessing_context=context)
    batch = next(iter(small))
    assert not batch["image"].is_shared()
    batch["image"].add_(1)


@pytest.mark.slow
def test_streams_are_shared_out(context):
    loader = DataLoader(
        here.Count(11), batch_size=2, num_workers=3, multiprocessing_context=context
    )
    batches = lists(loader)
    assert sorted(chain(*batches)) == list(range(11))
    assert batches == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    dropped = DataLoader(here.Count(11), batch_size=2, num_workers=3, drop_last=True)
    assert lists(dropped) == batches[:-1]


@pytest.mark.parametrize("in_order", [True, False])
def test_a_stream_that_ends_early_leaves_the_work_to_the_others(in_order):
    loader = DataLoader(here.Uneven(20), num_workers=2, in_order=in_order, prefetch_factor=3)
    assert sorted(chain(*lists(loader))) == list(range(20))


def test_no_batch_at_all():
    assert list(DataLoader(here.Count(0), num_workers=2)) == []
    assert list(DataLoader([], num_workers=2)) == []


def test_single_samples_bring_no_more_than_themselves():
    rows = tp.zeros(1000, 1000)
    loader = DataLoader(tp.data.TensorDataset(rows), batch_size=None, num_workers=1)
    (row,) = next(iter(loader))
    assert row.shape == (1000,)
    message = shared.pack(None, rows[0])
    assert message.sizes == [4000]


@pytest.mark.parametrize(
    "tensor",
    [
        tp.arange(6).reshape(2, 3).t(),
        tp.arange(12).reshape(3, 4)[:, ::2],
        tp.ones(3, 1).expand(3, 4),
        tp.zeros(0, 3),
        tp.tensor(True),
        tp.tensor([1 + 2j]),
        tp.arange(24.0).reshape(2, 3, 4).permute(1, 2, 0),
        tp.ones(2, requires_grad=True),
        tp.nn.Parameter(tp.ones(2)),
        tp.empty(2, device="meta"),
    ],
    ids=str,
)
def test_every_sort_of_tensor_arrives_as_it_was(tensor):
    for limit in (1 << 16, -1):  # through the pipe, and through memory
        receiver, sender = multiprocessing.Pipe()
        with pytest.MonkeyPatch.context() as patch, receiver, sender:
            patch.setattr(shared, "INLINE_BYTES", limit)
            shared.send(sender, shared.pack("head", [tensor]))
            head, (arrived,) = shared.receive(receiver)
        assert head == "head"
        assert type(arrived) is type(tensor)
        assert (arrived.dtype, arrived.shape) == (tensor.dtype, tensor.shape)
        assert arrived.requires_grad == tensor.requires_grad
        assert arrived.is_meta or arrived.tolist() == tensor.tolist()


# --- what a worker knows ---


@pytest.mark.slow
def test_workers_are_seeded(context):
    def facts(seed, generator=None):
        tp.manual_seed(seed)
        loader = DataLoader(
            here.Facts(),
            batch_size=None,
            num_workers=2,
            generator=generator,
            multiprocessing_context=context,
            worker_init_fn=here.initialize,
        )
        return list(loader)

    first, again, other = facts(1), facts(1), facts(2)
    assert [fact["id"] for fact in first] == [0, 1, 0, 1]
    assert [fact["initialized"] for fact in first] == [0, 1, 0, 1]
    assert {fact["workers"] for fact in first} == {2}
    assert {fact["threads"] for fact in first} == {1}
    assert first[1]["seed"] == first[0]["seed"] + 1 == first[1]["initial_seed"]
    draws = [fact["draws"] for fact in first]
    assert all(len(set(column)) == 4 for column in zip(*draws, strict=True))
    assert draws == [fact["draws"] for fact in again]
    assert draws[0] != other[0]["draws"]
    assert os.getpid() not in {fact["pid"] for fact in first}
    if context == "fork":
        generators = [tp.Generator().manual_seed(3) for _ in range(2)]
        a, b = (facts(seed, generator) for seed, generator in enumerate(generators))
        assert [fact["draws"] for fact in a] == [fact["draws"] for fact in b]


# --- options ---


@pytest.mark.slow
def test_workers_persist(context):
    loader = DataLoader(
        here.Facts(),
        batch_size=None,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context=context,
    )
    epochs = [[fact["pid"] for fact in loader] for _ in range(3)]
    assert epochs[0] == epochs[1] == epochs[2]
    assert len(multiprocessing.active_children()) == 2
    half = iter(loader)
    next(half)
    assert [fact["pid"] for fact in loader] == epochs[0]  # what was left of it is dropped
    del loader, half
    assert multiprocessing.active_children() == []


def test_workers_persist_over_streams():
    loader = DataLoader(here.Count(5), batch_size=2, num_workers=2, persistent_workers=True)
    assert lists(loader) == lists(loader) == [[0, 2], [1, 3], [4]]


def test_workers_do_not_persist_by_default():
    loader = DataLoader(here.Facts(), batch_size=None, num_workers=1)
    pids = [next(iter(loader))["pid"] for _ in range(2)]
    assert pids[0] != pids[1]
    assert all(gone(pid) for pid in pids)


def test_in_order():
    gate = here.Gate()
    loader = DataLoader(here.Waiting(gate), batch_size=None, num_workers=2, in_order=False)
    batches = iter(loader)
    early = [next(batches) for _ in range(4)]
    assert early == [1, 3, 4, 5]
    gate.open()
    assert list(batches) == [0, 2]
    assert list(DataLoader(here.Waiting(gate), batch_size=None, num_workers=2)) == list(range(6))


def test_timeout():
    gate = here.Gate()
    loader = DataLoader(here.Waiting(gate), num_workers=1, timeout=0.05)
    batches = iter(loader)
    with pytest.raises(RuntimeError, match=r"timed out after 0.05 seconds"):
        next(batches)
    gate.open()
    loader = DataLoader(here.Waiting(gate), num_workers=1, timeout=30)
    assert len(list(loader)) == 6


@pytest.mark.parametrize("prefetch", [1, 3])
def test_prefetch(prefetch):
    dataset = here.Counting(40)
    loader = DataLoader(dataset, num_workers=2, prefetch_factor=prefetch)
    batches = iter(loader)
    next(batches)
    del batches  # waits for the workers
    assert 1 <= dataset.reads.sum().item() <= 2 * prefetch + 1
    assert lists(loader) == [[i] for i in range(40)]
    assert dataset.reads[-20:].tolist() == [1] * 20
    assert DataLoader(dataset, num_workers=1).prefetch_factor == 2
    assert DataLoader(dataset).prefetch_factor is None


def test_the_default_context_may_be_given():
    context = multiprocessing.get_context("spawn")
    loader = DataLoader(here.Count(3), num_workers=1, multiprocessing_context=context)
    assert lists(loader) == [[0], [1], [2]]


def test_memory_is_pinned_by_the_runtime(monkeypatch):
    runtime = tp.plugins.runtimes()["cpu"]
    pinned = []

    def pin(array):
        pinned.append(array.copy())
        return pinned[-1]

    monkeypatch.setattr(runtime, "pin", pin)
    monkeypatch.setattr(
        runtime, "is_pinned", lambda array: any(np.shares_memory(array, p) for p in pinned)
    )
    for workers in (0, 1):
        batch = next(iter(DataLoader(here.Structured(), pin_memory=True, num_workers=workers)))
        assert batch["image"].is_pinned()
        assert batch["name"] == ["sample 0"] or batch["name"] == ("sample 0",)
    assert not tp.ones(2).is_pinned()
    with pytest.raises(RuntimeError, match="cannot pin"):
        tp.empty(2, device="meta").pin_memory()


def test_a_loader_with_workers_can_be_copied_and_pickled():
    import copy
    import pickle

    loader = DataLoader(here.Count(3), num_workers=1, persistent_workers=True)
    assert lists(loader) == [[0], [1], [2]]
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert lists(other) == [[0], [1], [2]]


# --- failures ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sort", "error"),
    [
        ("value", ValueError),
        ("key", KeyError),
        ("strange", RuntimeError),
        ("local", RuntimeError),
        ("stop", RuntimeError),
    ],
)
def test_an_exception_is_raised_here(context, sort, error):
    batches = iter(
        DataLoader(
            here.Failing(sort),
            batch_size=2,
            num_workers=2,
            multiprocessing_context=context,
        )
    )
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(error) as caught:
        next(batches)
    assert type(caught.value) is error
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("Caught ")
    assert lines[0].endswith(" in DataLoader worker process 1.")
    assert lines[1] == "Original Traceback (most recent call last):"
    assert any("worker_datasets.py" in line and line.endswith("in fail") for line in lines)
    assert "no two" in lines[-1]
    assert lists(batches) == [[4, 5]]  # the other batches are there


@pytest.mark.parametrize("streams", [False, True])
def test_an_exception_of_the_initialization(streams):
    source = here.Count(4) if streams else here.Structured(4)
    batches = iter(DataLoader(source, num_workers=2, worker_init_fn=here.fail_to_initialize))
    with pytest.raises(ValueError, match="worker 0 cannot begin"):
        next(batches)


@pytest.mark.parametrize(
    ("collate", "error"), [(here.unpicklable, None), (here.attached, RuntimeError)]
)
def test_a_batch_that_cannot_be_sent(collate, error):
    batches = iter(DataLoader(here.Count(2), num_workers=1, collate_fn=collate))
    with pytest.raises(error or Exception, match=r"in DataLoader worker process 0") as caught:
        next(batches)
    assert "shared.py" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(("sort", "text"), [("kill", "signal: Killed"), ("exit", "exit code 3")])
def test_a_worker_that_ends(context, sort, text):
    loader = DataLoader(here.Ending(sort), num_workers=2, multiprocessing_context=context)
    batches = iter(loader)
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid \d+\) .*{text}.* worker 0"):
        list(batches)
    assert list(batches) == []


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_a_killed_worker_raises_while_others_wait(context, persistent):
    gate = here.Gate(context)
    loader = DataLoader(
        here.Waiting(gate),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=persistent,
    )
    batches = iter(loader)
    victim = multiprocessing.active_children()[0]
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=rf"pid {victim.pid}\) is killed by signal: Killed"):
        next(batches)  # worker 0 waits for ever
    gate.open()
    if persistent:
        assert list(loader) == list(range(6))  # with new workers


def test_all_workers_are_killed_within_an_endless_pass():
    pool = iter(DataLoader(here.Count(10**9), num_workers=2))
    for child in multiprocessing.active_children():
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="is killed by signal: Killed"):
        for _ in pool:
            pass


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as POSIX has them")
def test_workers_leave_ctrl_c_to_the_main_process(context):
    """A terminal sends it to all processes: what becomes of the pass, the main one says."""
    loader = DataLoader(here.Count(40), num_workers=2, multiprocessing_context=context)
    batches = iter(loader)
    seen = [next(batches), next(batches)]  # one of each, so that both are there
    for child in multiprocessing.active_children():
        os.kill(child.pid, signal.SIGINT)
    assert lists([*seen, *batches]) == [[number] for number in range(40)]


# --- nothing stays behind ---


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("batches", [1, 5], ids=["broken off", "read to the end"])
def test_workers_under_torchs_name_end_with_the_iterator(context, batches, persistent):
    loader = DataLoader(
        list(range(10)), 2, num_workers=2, persistent_workers=persistent,
        multiprocessing_context=context,
    )  # fmt: skip
    iterator = iter(loader)
    workers = iterator._workers
    assert [worker.is_alive() for worker in workers] == [True, True]
    for _ in range(batches):
        next(iterator)
    iterator._shutdown_workers()
    assert [worker.is_alive() for worker in workers] == [False, False]
    assert [worker.exitcode for worker in workers] == [0, 0]


@pytest.mark.slow
def test_a_broken_off_pass_ends_its_workers(context):
    loader = DataLoader(here.Structured(), num_workers=2, multiprocessing_context=context)
    for _ in loader:
        pids = [child.pid for child in multiprocessing.active_children()]
        break
    assert len(pids) == 2
    assert multiprocessing.active_children() == []
    assert all(gone(pid) for pid in pids)


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="counts what /proc shows")
def test_no_file_stays_open():
    def open_files():
        return len(list(Path("/proc/self/fd").iterdir()))

    def run():
        loader = DataLoader(here.Structured(), batch_size=5, num_workers=2)
        for _ in loader:
            pass
        batches = iter(loader)
        kept = next(batches)
        del batches
        return kept["image"].sum().item()

    run()
    gc.collect()
    before = open_files(), shared_memory.alive()
    for _ in range(5):
        run()
    gc.collect()
    assert (open_files(), shared_memory.alive()) == before


def test_memory_is_freed_with_the_last_tensor_over_it():
    gc.collect()
    before = shared_memory.alive()
    batch = next(iter(DataLoader(here.Structured(), batch_size=5, num_workers=1)))
    row = batch["image"][2, 3]
    del batch
    assert shared_memory.alive() == before + 1
    assert row.tolist() == [2.0] * 100
    del row
    assert shared_memory.alive() == before


def test_many_batches_can_be_kept(monkeypatch):
    gc.collect()
    monkeypatch.setattr(shared, "MOST_MAPPED", shared_memory.alive() + 3)
    loader = DataLoader(here.Structured(10), batch_size=2, num_workers=1)
    kept = list(loader)
    assert [batch["image"].is_shared() for batch in kept] == [True] * 3 + [False] * 2
    assert [batch["image"][0, 0, 0].item() for batch in kept] == [0, 2, 4, 6, 8]


def test_without_shared_memory_batches_go_through_the_pipe(monkeypatch):
    monkeypatch.setattr(shared_memory.SharedMemory, "SUPPORTED", False)
    loader = DataLoader(
        here.Structured(), batch_size=5, num_workers=2, multiprocessing_context="fork"
    )
    batches = list(loader)
    assert [batch["image"].is_shared() for batch in batches] == [False] * 4
    assert batches[3]["image"][4, 0, 0].item() == 19


PROGRAM = """
import sys
sys.path.append({folder!r})
from tensorplug.data import DataLoader
import worker_datasets as here

if __name__ == "__main__":
    loader = DataLoader(here.Structured(), num_workers=2, persistent_workers=True,
                        multiprocessing_context={context!r})
    batches = iter(loader)
    next(batches)
    print("ready", flush=True)
    {then}
"""


@pytest.mark.slow
@pytest.mark.parametrize("then", ["pass", "sys.exit(0)", "input()"])
def test_no_worker_outlives_the_main_process(tmp_path, context, then):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folder=str(HERE), context=context, then=then))
    process = subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        if then == "input()":
            process.kill()
        # The output ends when the last process that holds it has ended.
        assert process.communicate(timeout=60)[0] == ""
    assert process.returncode == (-signal.SIGKILL if then == "input()" else 0)


@pytest.mark.parametrize("base_seed", [0, 1, 2**32 - 1, 2**32, 2**40 + 5, 2**63 - 1])
def test_numpy_is_seeded_by_torchs_numbers(base_seed):
    torch_worker = pytest.importorskip(
        "torch.utils.data._utils.worker", reason="its numbers are compared"
    )
    for worker in (0, 1, 7):
        assert numpy_state(base_seed, worker) == torch_worker._generate_state(base_seed, worker)


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "bsc"])
def test_sparse_tensors_come_from_workers_as_they_are(name):
    block = (1, 3) if name[0] == "b" else None
    dense = tp.eye(3)[:2] * 5
    sample = dense.to_sparse(layout=getattr(tp, f"sparse_{name}"), blocksize=block)
    loader = DataLoader(
        [sample, sample * 2], batch_size=None, num_workers=1, multiprocessing_context="fork"
    )
    for number, got in enumerate(loader, 1):
        tp.testing.assert_close(got, sample * number)
        assert got.layout is sample.layout
