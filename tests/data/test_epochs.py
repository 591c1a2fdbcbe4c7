"""Many epochs, and reads that overlap."""

import gc
import sys
import tracemalloc
from pathlib import Path

import pytest
import worker_datasets as here

from tensorplug.core.tensor import shared_memory
from tensorplug.data import DataLoader

EPOCHS = 1000
LINUX = sys.platform == "linux"


def held():
    """What this process holds: open files and pieces of shared memory, which has no names."""
    gc.collect()
    # CPython holds the names that unpickling looked up.
    getattr(sys, "_clear_internal_caches", sys._clear_type_cache)()
    return len(list(Path("/proc/self/fd").iterdir())), shared_memory.alive()


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="counts what /proc shows")
@pytest.mark.parametrize(
    "options", [{}, {"num_workers": 2, "persistent_workers": True}], ids=["here", "workers"]
)
def test_a_thousand_epochs_leak_nothing(options):
    # Each batch is 120 KB, which travels in shared memory.
    loader = DataLoader(here.Structured(6), batch_size=3, shuffle=True, **options)

    def epochs(count):
        for _ in range(count):
            for batch in loader:
                label = batch["label"]
        return label

    epochs(20)  # caches fill
    tracemalloc.start(1)
    try:
        epochs(5)
        before = held()
        allocated, _ = tracemalloc.get_traced_memory()
        epochs(EPOCHS)
        assert held() == before
        now, _ = tracemalloc.get_traced_memory()
        largest = tracemalloc.take_snapshot().statistics("lineno")[:10]
    finally:
        tracemalloc.stop()
    assert now - allocated < 50 * EPOCHS, largest  # less than any object for each epoch


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_read_at_the_same_time(workers):
    # With fewer processes than are to meet, none would ever get its sample.
    loader = DataLoader(here.Meeting(workers), num_workers=workers, multiprocessing_context="fork")
    assert [batch.item() for batch in loader] == [0, 1, 2, 3]
