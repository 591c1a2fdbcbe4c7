"""Each test leaves the process as it found it: a mode that stays on would change all tests after it.

And each one draws the same numbers, whichever tests ran before it.
"""

import argparse
import gc
import zlib

import pytest

import tensorplug as tp
from tensorplug.testing import making
from tensorplug.testing.process_state import process_state

BEFORE = pytest.StashKey()


def pytest_addoption(parser):
    slow = "of the tests that are marked as slow take every Nth, always the same ones"
    parser.addoption("--slow-every", default=1, type=int, metavar="N", help=slow)
    part = "of the tests in a folder take every Nth, always the same ones; may be given again"
    parser.addoption(
        "--part", default=[], action="append", type=_part, metavar="FOLDER=N", help=part
    )
    rest = "of the tests in a folder leave out those that --part takes; may be given again"
    parser.addoption(
        "--rest", default=[], action="append", type=_part, metavar="FOLDER=N", help=rest
    )


def _part(value):
    folder, _, every = value.partition("=")
    if not every.isdigit() or not int(every):
        raise argparse.ArgumentTypeError(f"expected FOLDER=N, such as tests/nn=2, got {value!r}")
    return folder.rstrip("/") + "/", int(every)


def pytest_collection_modifyitems(config, items):
    slow_every = config.getoption("--slow-every")
    parts, rests = config.getoption("--part"), config.getoption("--rest")
    left = set()
    for item in items:
        number = zlib.crc32(item.nodeid.encode())
        steps = [every for folder, every in parts if item.nodeid.startswith(folder)]
        steps += [slow_every] if item.get_closest_marker("slow") else []
        taken = [every for folder, every in rests if item.nodeid.startswith(folder)]
        if any(number % every for every in steps) or any(number % every == 0 for every in taken):
            left.add(item)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish():
    # Tens of thousands of items outlive every test: the collector need not look at them each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from tests.scheduling import Scheduling  # where xdist is

    return Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None


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
