"""Each test leaves the process as it found it: a mode that stays on would change all tests after it.

And each one draws the same numbers, whichever tests ran before it.
"""

import gc
import zlib

import pytest

import tensorplug as tp
from tensorplug.testing import making
from tensorplug.testing.process_state import process_state

BEFORE = pytest.StashKey()


def pytest_addoption(parser):
    sample = "of the tests that are marked as slow take every Nth, always the same ones"
    parser.addoption("--slow-every", default=1, type=int, metavar="N", help=sample)


def pytest_collection_modifyitems(config, items):
    every = config.getoption("--slow-every")
    left = {
        item
        for item in items
        if item.get_closest_marker("slow") and zlib.crc32(item.nodeid.encode()) % every
    }
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish():
    # Tens of thousands of items outlive every test: the collector need not look at them each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    making.seed(item.nodeid)
    tp.manual_seed(zlib.crc32(item.nodeid.encode()))
    item.stash[BEFORE] = process_state()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    result = yield
    before, after = item.stash[BEFORE], process_state()
    left = {name: (before[name], now) for name, now in after.items() if now != before[name]}
    assert not left, f"the test leaves behind: {left}"
    return result
