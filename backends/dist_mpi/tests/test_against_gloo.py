"""The same program on torch with gloo, and here: what it prints is the same. Long: ``make fuzz``."""

import importlib.util
import os
import re
import socket
import subprocess
import sys

import pytest

from .test_mpi import LONG, ROOT, environment, launched, missing, run

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    LONG,
]

PROGRAM = """
import torch, torch.distributed as dist

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
out = []
for name in "float32 float64 float16 bfloat16 int64 uint8 int8".split():
    dtype = getattr(torch, name)
    for op in ("SUM", "MIN", "MAX", "PRODUCT"):
        t = (torch.arange(6) + r + 1).to(dtype)
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        out.append((op, t.double().tolist()))
t = torch.arange(6.0) * (r + 1)
dist.broadcast(t, 1)
dist.reduce(t, 1)
out.append(t.tolist() if r == 1 else None)
parts = [torch.empty(3) for _ in range(n)]
dist.all_gather(parts, torch.full((3,), float(r)))
out.append([part.tolist() for part in parts])
parts = [torch.empty(3) for _ in range(n)] if r == 0 else None
dist.gather(torch.full((3,), float(r)), parts)
out.append(parts and [part.tolist() for part in parts])
t = torch.empty(2)
dist.scatter(t, [torch.full((2,), float(i)) for i in range(n)] if r == 0 else None)
out.append(t.tolist())
dist.reduce_scatter(t, [torch.ones(2) * i for i in range(n)])
out.append(t.tolist())
t = torch.empty(2 * n)
dist.all_to_all_single(t, torch.arange(2.0 * n) + 10 * r)
out.append(t.tolist())
if r == 0:
    dist.send(torch.ones(3) * 7, 1)
if r == 1:
    t = torch.zeros(3)
    out.append((dist.recv(t), t.tolist()))
values = [None] * n
dist.all_gather_object(values, {"r": r, "x": "a" * (r + 1)})
out.append(values)
values = [None] * n if r == 0 else None
dist.gather_object(("g", r), values)
out.append(values)
values = [1, "two", [3]] if r == 0 else [None] * 3
dist.broadcast_object_list(values, 0)
out.append(values)
values = [None]
dist.scatter_object_list(values, [str(i) * 3 for i in range(n)] if r == 0 else None, 0)
out.append(values)
out.append(dist.get_rank(dist.new_group([1])))
t = torch.ones(2)
work = dist.all_reduce(t, group=dist.new_group([0, 1]), async_op=True)
out.append((work.wait(), t.tolist(), work.is_completed()))
out.append(dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0] / 2).wait().tolist())
for call in (
    lambda: dist.all_reduce([1.0]),
    lambda: dist.all_reduce(torch.ones(2, dtype=torch.complex64), dist.ReduceOp.MAX),
    lambda: dist.broadcast(torch.ones(2), 7),
    lambda: dist.send(torch.ones(2), r),
    lambda: dist.gather(torch.ones(2), dst=r),
    lambda: dist.new_group([0, 0]),
    lambda: dist.init_process_group("gloo"),
    lambda: dist.batch_isend_irecv([1]),
):
    try:
        call()
        out.append("no error")
    except Exception as error:
        out.append(next(k.__name__ for k in (TypeError, ValueError, RuntimeError) if isinstance(error, k)))
for line in out:
    print(line)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_program_prints_the_same(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    ours = launched(2, "-m", "tensorplug.compat", path)
    assert ours.returncode == 0, ours.stderr
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        place = {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(probe.getsockname()[1]),
        }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", path], stdout=subprocess.PIPE, text=True,
            env=environment() | place | {"RANK": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[0].splitlines() for process in ranks]
    for rank, theirs in enumerate(said):
        head = f"[rank{rank}]: "
        mine = [
            line.removeprefix(head) for line in ours.stdout.splitlines() if line.startswith(head)
        ]
        assert mine == theirs
        assert len(mine) > 45


SPAWNED = """
import torch, torch.distributed as dist, torch.multiprocessing as mp

def worker(rank, size, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    t = torch.ones(2)
    dist.all_reduce(t)
    print("rank", rank, t.tolist(), flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    import socket
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    mp.spawn(worker, args=(2, port), nprocs=2, join=True)
"""


def test_processes_of_multiprocessing_meet_at_an_address(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, "-m", "tensorplug.compat", path], capture_output=True, text=True, timeout=150,
        env=environment() | {"PATH": os.environ["PATH"]}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} [2.0, 2.0]" for rank in range(2)]


PROGRAMS = ROOT / "tests" / "world" / "distributed"
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("program", ["toy", "gpt", "imagenet"])
def test_programs_train_alike(program, tmp_path, monkeypatch):
    """Re-creations of nanoGPT and pytorch/examples, by torchrun with gloo and by our launcher."""
    monkeypatch.setenv("OUT_DIR", str(tmp_path))
    path = PROGRAMS / f"{program}.py"
    ours = launched(2, "-m", "tensorplug.compat", path)
    assert ours.returncode == 0, ours.stderr
    torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    theirs = run(*torchrun, "--nproc-per-node", 2, path)
    assert theirs.returncode == 0, theirs.stderr
    mine = sorted(line.partition("]: ")[2] for line in ours.stdout.splitlines())
    other = sorted(theirs.stdout.splitlines())
    assert [NUMBER.sub("#", line) for line in mine] == [NUMBER.sub("#", line) for line in other]
    for a, b in zip(mine, other, strict=True):
        assert [float(n) for n in NUMBER.findall(a)] == pytest.approx(
            [float(n) for n in NUMBER.findall(b)], rel=1e-3, abs=1e-3
        )
    assert len(mine) >= 3
