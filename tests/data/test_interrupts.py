"""A loader that is interrupted leaves no process and no open file behind."""

import contextlib
import gc
import multiprocessing
import sys
from itertools import chain
from pathlib import Path

import pytest
import worker_datasets as here

from tensorplug.data import DataLoader, pool, shared, signals
from tensorplug.testing.interrupts import Interrupts, chosen_points

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
SAMPLE = 6  # of some 2,400, and these
WHERE_THINGS_ARE_MADE = ("/popen_fork.py", "/reduction.py")


def read():
    loader = DataLoader(
        here.Structured(4), batch_size=2, num_workers=1, multiprocessing_context="fork"
    )
    for batch in loader:
        batch["label"].sum()


def held():
    """The number of open files, and the processes that this one started, ended ones that wait for it too.

    Other tests leave some: the server of forks and the tracker of resources run as long as this process.
    """
    children = (thread.read_text().split() for thread in Path("/proc/self/task").glob("*/children"))
    return len(list(Path("/proc/self/fd").iterdir())), sorted(chain.from_iterable(children))


def leaks(interrupts, point):
    """Return what an interrupt leaves behind."""
    gc.collect()
    before = held()
    interrupts.run(read, point)
    interrupts.error = None
    gc.collect()
    left = multiprocessing.active_children()
    return (left, *held()) if left or held() != before else None


# In a finalizer an interrupt is lost, as Python has it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts():
    interrupts = Interrupts()
    for point in chosen_points(interrupts, read, SAMPLE, WHERE_THINGS_ARE_MADE):
        assert leaks(interrupts, point) is None, point


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("module", [pool, shared])
def test_a_fault_is_found(module, monkeypatch):
    """Without putting off signals a worker, or a descriptor, gets lost."""
    interrupts = Interrupts()
    file = "/popen_fork.py" if module is pool else "/reduction.py"
    monkeypatch.setattr(module, "signals_put_off", contextlib.nullcontext)
    points = chosen_points(interrupts, read, 0, (file,))
    found = next(filter(None, (leaks(interrupts, point) for point in points)), None)
    assert found is not None
    for process in found[0]:
        process.kill()
        process.join()


def test_blocks_are_forgotten_where_no_signal_has_a_handler(monkeypatch):
    """As in programs that a shell started in the background, which ignore SIGINT."""
    monkeypatch.setattr(signals.signal, "getsignal", lambda number: signals.signal.SIG_IGN)
    before = len(signals._open)
    with signals.signals_put_off():
        assert len(signals._open) == before + 1
    assert len(signals._open) == before
