"""Calls like one before pass few Python frames, recorded or not."""

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
    sys.setprofile(note)
    try:
        call(x)
    finally:
        sys.setprofile(before)
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
