"""Calls like one before pass few Python frames, recorded or not."""

import gc
import sys

import pytest

import tensorplug as tp
from tensorplug.core.dispatch import contracts

INDEX = tp.tensor([1, 0, 2])
CALLS = {
    "index_select": lambda x: tp.index_select(x, 0, INDEX),
    "sort": lambda x: tp.sort(x, 1),
    "topk": lambda x: tp.topk(x, 2, 1),
    "max": lambda x: tp.max(x, 1),
    "var": lambda x: tp.var(x, 1),
    "tril": lambda x: tp.tril(x),
}


def frames(call, x):
    for _ in range(3):
        call(x)
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("tensorplug"):
            found.append(frame.f_code.co_name)

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # what other tests left in cycles has callbacks of ours, which would count as frames
    sys.setprofile(note)
    try:
        call(x)
    finally:
        sys.setprofile(before)
        gc.enable()
    return found


@pytest.fixture(autouse=True)
def unchecked():
    """Leave the results of kernels unchecked, as users do; other tests in the process may not."""
    before = contracts.every_call
    contracts.check_every_call(False)
    yield
    contracts.check_every_call(before)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_known_call_passes_few_frames(name, recorded):
    found = frames(CALLS[name], tp.rand(4, 5, requires_grad=recorded))
    assert len(found) <= 12, found


def test_garbage_of_others_does_not_count():
    class Left:
        def __del__(self):
            tp.ones(1)  # passes frames of ours

    def call(x):
        left = Left()
        left.itself = left
        del left
        kept = [[] for _ in range(2 * gc.get_threshold()[0])]  # sets off the collector
        assert kept
        return tp.var(x, 1)

    x = tp.rand(4, 5)
    assert frames(call, x) == frames(CALLS["var"], x)
