"""Calls like one before pass few Python frames, recorded or not."""

import gc
import sys
import traceback
from pathlib import Path

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch import contracts

INDEX = tp.tensor([1, 0, 2])
CLASSES = tp.tensor([1, 0, 2, 3])
WEIGHT = tp.rand(3, 5)
CALLS = {
    "index_select": lambda x: tp.index_select(x, 0, INDEX),
    "sort": lambda x: tp.sort(x, 1),
    "topk": lambda x: tp.topk(x, 2, 1),
    "max": lambda x: tp.max(x, 1),
    "var": lambda x: tp.var(x, 1),
    "tril": lambda x: tp.tril(x),
    "max of all": lambda x: tp.max(x),
    "min of all": lambda x: tp.min(x),
    "median of all": lambda x: tp.median(x),
    "clamp, one bound": lambda x: x.clamp(min=0.1),
    "clip, one bound": lambda x: tp.clip(x, None, 0.5),
    "stack": lambda x: tp.stack([x, x]),
    "stack of a tuple": lambda x: tp.stack((x, x), 1),
    "cat": lambda x: tp.cat([x, x], dim=1),
    "gelu": lambda x: F.gelu(x),
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES),
    "softmax": lambda x: F.softmax(x, 1),
    "linear": lambda x: F.linear(x, WEIGHT),
    "embedding": lambda x: F.embedding(INDEX, x),
    "layer_norm": lambda x: F.layer_norm(x, (5,)),
    "where": lambda x: tp.where(x > 0, x, x),
    "reshape": lambda x: x.reshape(2, 10),
    "view": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute": lambda x: x.permute(1, 0),
    "movedim": lambda x: x.movedim(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(0),
    "narrow": lambda x: x.narrow(1, 0, 2),
    "select": lambda x: x.select(1, 2),
    "diagonal": lambda x: x.diagonal(),
    "x[0]": lambda x: x[0],
    "x[1:3]": lambda x: x[1:3],
    "x[1, 2]": lambda x: x[1, 2],
    "x[..., None]": lambda x: x[..., None],
}


def frames(call, x):
    for _ in range(3):
        call(x)
    found = []

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("tensorplug.") and "plugin" not in module:
            found.append(frame.f_code.co_name)

    before = sys.getprofile()
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


def test_frames_name_installed_files():
    """Those of compiled modules have the path of the source below site-packages."""
    folder = Path(tp.__file__).parents[1]
    with pytest.raises(IndexError) as caught:
        tp.ones(2, 3).size(7)
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[-1].name == "shapes.py"
    assert all((folder / file).exists() for file in files)
