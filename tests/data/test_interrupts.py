"""A loader that is interrupted leaves no process and no open file behind."""

import gc
import multiprocessing
import sys
from itertools import chain
from pathlib import Path

import pytest
import worker_datasets as here

from tensorplug.data import DataLoader
from tensorplug.testing.interrupts import Interrupts, chosen_points

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
SAMPLE = 16  # of some 5,000


def read():
    loader = DataLoader(
        here.Structured(4), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    for batch in loader:
        batch["label"].sum()


def held():
    """The number of open files, and the processes that this one started, ended ones that wait for it too.

    Other tests leave some: the server of forks and the tracker of resources run as long as this process.
    """
    children = (thread.read_text().split() for thread in Path("/proc/self/task").glob("*/children"))
    return len(list(Path("/proc/self/fd").iterdir())), sorted(chain.from_iterable(children))


# In a finalizer an interrupt is lost, as Python has it.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts():
    interrupts = Interrupts()
    points = chosen_points(interrupts, read, SAMPLE)
    gc.collect()
    before = held()
    for point in points:
        interrupts.run(read, point)
        interrupts.error = None
        gc.collect()
        assert multiprocessing.active_children() == []
        assert held() == before, point
