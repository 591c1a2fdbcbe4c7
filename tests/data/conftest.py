"""Worker processes that are spawned import the datasets of these tests by name."""

import gc
import multiprocessing
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    # From Python 3.12 on; here the parent's threads (BLAS, queues) hold no lock that a worker needs.
    mark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(mark)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def context(request):
    return request.param


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    if multiprocessing.active_children():
        gc.collect()  # a caught exception holds the frame that it was caught in, and so an iterator
    assert multiprocessing.active_children() == []
