"""The backend on MPI in worlds of one to four processes: conformance, and what happens when one fails."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tensorplug.distributed as dist

ROOT = Path(__file__).parents[3]
MPIEXEC = Path(sys.executable).with_name("mpiexec")


def missing():
    if importlib.util.find_spec("tensorplug_dist_mpi") is None:
        return "tensorplug-dist-mpi is not installed"
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    if not MPIEXEC.exists():
        return "no mpiexec beside Python: pip install mpich"
    return ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
FUZZ = int(os.environ.get("TENSORPLUG_FUZZ", "0"))
LONG = pytest.mark.skipif(not FUZZ, reason="long: make fuzz")
SIZES = (1, 2, 3, 4) if FUZZ else (2,)


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PMI", "RANK"))} | {
        "OMP_NUM_THREADS": "1"
    }


def run(*command, timeout=150):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, env=environment(), cwd=ROOT,
    )  # fmt: skip


def launched(size, *program):
    return run(
        sys.executable, "-m", "tensorplug.distributed.run", "--nproc-per-node", size, *program
    )


def by_mpiexec(size, *program):
    return run(MPIEXEC, "-n", size, sys.executable, *program)


def test_the_backend_is_there():
    assert dist.is_mpi_available()
    assert dist.is_gloo_available()
    assert "mpi4py.MPI" not in sys.modules  # which would start MPI


@pytest.mark.parametrize("size", SIZES)
def test_conformance(size):
    every = [] if FUZZ else ["--every", "3"]
    done = by_mpiexec(size, "-m", "tensorplug.testing.collectives", "--backend", "mpi", *every)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"in a world of {size}: 0 failures" in done.stdout


FAULTY = """
import sys
import tensorplug_dist_mpi._communicator as ours
from mpi4py import MPI
from tensorplug.testing import collectives

kind = ours.MpiCommunicator
faults = {
    "broadcast": lambda: setattr(
        kind, "broadcast", lambda self, array, root, was=kind.broadcast: was(self, array, 0)
    ),
    "reduce_scatter": lambda: setattr(
        kind, "reduce_scatter", lambda self, output, array, reduction, was=kind.reduce_scatter: was(
            self, output, array.reshape(self.size, -1)[::-1].copy(), reduction)
    ),
    "all_reduce MIN": lambda: ours._OPS.update(min=MPI.MAX),
}
faults[sys.argv[1]]()
raise SystemExit(collectives.main(["--backend", "mpi", "--every", "11"]))
"""


@pytest.mark.parametrize("fault", ["broadcast", "reduce_scatter", "all_reduce MIN"])
@LONG
def test_the_suite_finds_a_planted_fault(tmp_path, fault):
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY)
    done = by_mpiexec(2, path, fault)
    assert done.returncode != 0
    assert f": {fault}" in done.stdout


PROGRAM = """
import os, sys, time
from datetime import timedelta
import tensorplug as tp
import tensorplug.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=2))
rank, mode = dist.get_rank(), sys.argv[1]
t = tp.ones(3)
dist.all_reduce(t)
assert t.tolist() == [2.0] * 3
if rank == 1:
    if mode == "raise":
        raise ValueError("trouble")
    if mode == "exit":
        sys.exit(3)
    if mode == "kill":
        os.kill(os.getpid(), 9)
    if mode == "late":
        time.sleep(60)
    if mode == "differs":
        dist.all_reduce(tp.ones(4))
dist.all_reduce(t)
print("done", rank)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        ("none", 0, ""),
        pytest.param("raise", 1, "[rank1]: ValueError: trouble", marks=LONG),
        pytest.param("exit", 3, "failed with exit status 3", marks=LONG),
        ("kill", 137, "rank 1 (pid"),
        ("late", 1, "ranks that arrived: 0; ranks that did not arrive: 1"),
    ],
)
def test_what_the_launcher_makes_of_a_failure(program, mode, status, said):
    started = time.monotonic()
    done = launched(2, program, mode)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert time.monotonic() - started < 60
    assert (done.stdout.count("done") == 2) == (mode == "none")


def test_a_failure_under_mpiexec_ends_all(program):
    done = by_mpiexec(2, program, "raise")
    assert done.returncode != 0
    assert "ValueError: trouble" in done.stderr
    assert "done" not in done.stdout


def test_tensors_that_differ_are_an_error_on_all_ranks_in_detail(program):
    found = run(
        "env", "TORCH_DISTRIBUTED_DEBUG=DETAIL", sys.executable, "-m", "tensorplug.distributed.run",
        "--nproc-per-node", 2, program, "differs",
    )  # fmt: skip
    assert found.returncode == 1
    message = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "all_reduce((3,), tensorplug.float32, SUM), but Rank 1 is running collective: "
        "all_reduce((4,), tensorplug.float32, SUM)."
    )
    assert message in found.stderr


def on_two_machines(processes, program, *arguments):
    """Start two launchers, under different names of this machine where that may be done."""
    import shutil
    import socket

    with socket.socket() as probe:  # the launchers take the next port as well
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    named = shutil.which("unshare") and not run("unshare", "--uts", "true").returncode
    started = []
    for node in range(2):
        command = [
            sys.executable, "-m", "tensorplug.distributed.run", "--nnodes", "2", "--node-rank", str(node),
            "--nproc-per-node", str(processes), "--rdzv-endpoint", f"127.0.0.1:{port}", *program,
        ]  # fmt: skip
        if named:
            command = [
                "unshare",
                "--uts",
                "sh",
                "-c",
                f'hostname node{node}; exec "$@"',
                "sh",
                *command,
            ]
        started.append(
            subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=environment(), cwd=ROOT,
            )
        )  # fmt: skip
    said = [process.communicate(timeout=150) for process in started]
    return bool(named), [process.returncode for process in started], said


MACHINES = """
import os, signal, socket, tensorplug as tp, tensorplug.distributed as dist
dist.init_process_group("mpi")
names = [None] * dist.get_world_size()
dist.all_gather_object(names, socket.gethostname())
print(names)
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(tp.ones(3))
print("not reached")
"""


def test_the_failure_on_one_machine_ends_the_others(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(MACHINES)
    named, codes, said = on_two_machines(1, [str(path)])
    assert codes == [1, 137], said
    assert "node 1: rank 1" in said[0][1]
    assert "SIGKILL" in said[0][1]
    assert "not reached" not in said[0][0]
    if named:
        assert "['node0', 'node1']" in said[0][0]


@LONG
def test_conformance_on_two_machines():
    program = ["-m", "tensorplug.testing.collectives", "--backend", "mpi"]
    _, codes, said = on_two_machines(2, program, "--every", "4")
    assert codes == [0, 0], said
