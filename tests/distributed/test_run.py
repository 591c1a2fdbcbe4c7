"""``python -m tensorplug.distributed.run``: places, output, failures. No process group is needed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tensorplug
from tensorplug.distributed import run

LONG = pytest.mark.skipif("TENSORPLUG_FUZZ" not in os.environ, reason="long: make fuzz")
ROOT = Path(tensorplug.__file__).parents[2]


def launch(*arguments, timeout=100):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "OMP"))}
    return subprocess.run(
        [sys.executable, "-m", "tensorplug.distributed.run", *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, env=environment, cwd=ROOT,
    )  # fmt: skip


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_each_process_finds_its_place_as_torchrun_sets_it(tmp_path):
    path = program(
        tmp_path,
        "import os, sys\n"
        "names = 'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK OMP_NUM_THREADS'.split()\n"
        "print(*[os.environ[name] for name in names], sys.argv[1:], __name__)\n"
        "assert int(os.environ['MASTER_PORT']) > 0 and os.environ['MASTER_ADDR'] == 'localhost'\n"
        "print('two', 'lines', file=sys.stderr)\n",
    )
    done = launch("--nproc_per_node", 2, "--standalone", path, "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[rank{rank}]: {rank} {rank} 2 2 0 1 ['--lr', '0.1'] __main__" for rank in range(2)
    ]
    assert sorted(done.stderr.splitlines()) == ["[rank0]: two lines", "[rank1]: two lines"]


@pytest.mark.slow
def test_a_failure_ends_all_and_its_traceback_comes_first(tmp_path):
    path = program(
        tmp_path,
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "if os.environ['RANK'] == '1':\n"
        "    raise ValueError('trouble')\n"
        f"Path({str(tmp_path)!r}, 'pid').write_text(str(os.getpid()))\n"
        "time.sleep(600)\n",
    )
    started = time.monotonic()
    done = launch("--nproc-per-node", 2, path)
    assert time.monotonic() - started < 60
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "[rank1]: Traceback (most recent call last):"
    assert "program.py" in lines[1]  # nothing of the launcher's is above it
    assert lines[-2] == "[rank1]: ValueError: trouble"
    assert "rank 1 (pid" in lines[-1]
    assert lines[-1].endswith("failed with exit status 1; all others were ended")
    if (tmp_path / "pid").exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


@LONG
@pytest.mark.parametrize(
    ("last", "status", "said"),
    [
        ("sys.exit(3)", 3, "failed with exit status 3"),
        ("sys.exit('no data')", 1, "failed with exit status 1"),
        ("os.kill(os.getpid(), 9)", 137, "was ended by signal 9 (SIGKILL)"),
    ],
)
def test_the_exit_status_is_that_of_the_first_failure(tmp_path, last, status, said):
    path = program(tmp_path, f"import os, sys\nprint('hello')\n{last}\n")
    done = launch("--nproc-per-node", 1, path)
    assert done.returncode == status
    assert said in done.stderr
    assert done.stdout == "[rank0]: hello\n"
    assert ("no data" in last) == ("[rank0]: no data" in done.stderr)


@LONG
def test_restarts_and_logs(tmp_path):
    path = program(
        tmp_path,
        "import os, sys\n"
        "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "print('attempt', attempt)\n"
        "sys.exit(attempt == '0')\n",
    )
    done = launch("--max-restarts", 1, "--log-dir", tmp_path / "logs", "-r", 3, path)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "starting anew" in done.stderr
    assert (tmp_path / "logs/rank-0.log").read_text() == "attempt 0\nattempt 1\n"


def test_what_the_launcher_leaves_when_it_is_ended(tmp_path):
    path = program(
        tmp_path,
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(os.getpid(), child.pid)\n"
        "time.sleep(600)\n",
    )
    command = [sys.executable, "-m", "tensorplug.distributed.run", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as launcher:
        pids = [int(word) for word in launcher.stdout.readline().split()[1:]]
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == 128 + signal.SIGTERM
    assert len(pids) == 2
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@LONG
def test_modules_and_other_programs(tmp_path):
    done = launch("-m", "timeit", "-n", "1", "-r", "1", "pass")
    assert done.returncode == 0
    assert "[rank0]: 1 loop" in done.stdout
    done = launch("--no-python", "echo", "hello")
    assert done.stdout == "[rank0]: hello\n"


@pytest.mark.parametrize("wish", ["0", "many", "-1"])
def test_a_number_of_processes_that_is_none(wish):
    with pytest.raises(SystemExit, match="--nproc-per-node"):
        run._processes(wish)
