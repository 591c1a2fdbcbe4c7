"""Kernels that a plugin brings for composites: results and gradients are those of calls without the plugin.

Each gradient is asked for by itself, in pairs and together, of one output and of all, in changing order, so
that what is kept of one call for the next ones is not taken for another. ``TENSORPLUG_FUZZ`` takes all
samples.
"""

import itertools
import os
import random

import numpy as np
import pytest
from strangers_kernels import WAYS, Call, alike, is_error, outcome, records, registered

import tensorplug as tp
from tensorplug.autograd.graph import decomposition
from tensorplug.core.dispatch.call_cache import clear_call_caches
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

pytestmark = [
    pytest.mark.usefixtures("nothing_looks_on"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]

SAMPLES = 1_000 if "TENSORPLUG_FUZZ" in os.environ else 2  # of each op
ROUNDS = 5  # the first passes are not replayed
RECORDS = records()
IN_MODULES = pytest.mark.skipif(
    tp.compiled(), reason="compiled code does not look names up in its module"
)


def calls_of(records, dtypes, samples=SAMPLES):
    """Return calls with differentiable arguments, evenly from each record's samples."""
    found = []
    for record in records:
        for dtype in set(dtypes) & set(record.dtypes):
            every = list(enumerate(cases.samples_of(record, "cpu", dtype)))
            for number, sample in every[:: max(1, -(-len(every) // samples))]:
                call = Call(record, dtype, sample, number)
                found += [call] if call.points else []
    return found


def questions(call):
    """Return what to ask of a call: which arguments require grad, one output or all, a second derivative."""
    places = range(len(call.points))
    sets = [(place,) for place in places][:4] + list(itertools.combinations(places, 2))[:3]
    sets += [tuple(places)] if len(places) > 2 else []
    asked = [(tracked, None, second) for tracked in sets for second in (False, True)]
    outputs = outcome(lambda: len(list(cases.tensors_in((call(*call.points),)))))
    if isinstance(outputs, int) and outputs > 1:
        asked += [(sets[-1], number, False) for number in range(min(outputs, 3))]
    return asked


def differing(calls, seed=0):
    """Return which calls differ with a plugin's kernels, and how many were compared."""
    expected = []
    for call in calls:
        asked = questions(call)
        clear_call_caches()
        expected.append({one: outcome(lambda: call.differentiated(*one)) for one in asked})  # noqa: B023
    clear_call_caches()
    rng = random.Random(seed)
    wrong, count = [], 0
    with registered(sorted({call.op.name for call in calls})):
        for call, answers in zip(calls, expected, strict=True):
            asked = [one for one in answers if not one[2]] * ROUNDS
            asked += [one for one in answers if one[2]]
            rng.shuffle(asked)
            for one in asked:
                count += 1
                found = outcome(lambda: call.differentiated(*one))  # noqa: B023
                if not alike(answers[one], found, 1e-6):
                    wrong.append(f"{call.said}: {one}\n{answers[one]}\n{found}")
                    break
    return wrong, count


@pytest.mark.parametrize("share", range(4))
def test_gradients(share):
    calls = calls_of(RECORDS[share::4], (tp.float64, tp.complex128))
    wrong, count = differing(calls, share)
    assert not wrong, "\n".join(wrong)
    assert count > 1000


@pytest.mark.parametrize("way", WAYS)
def test_other_ways(way):
    dtypes = (tp.float32,) if way == "autocast" else (tp.float64, tp.complex128)
    calls = calls_of(RECORDS, dtypes, max(1, SAMPLES // 2))
    clear_call_caches()
    expected = [outcome(lambda: WAYS[way](call)) for call in calls]  # noqa: B023
    assert sum(map(is_error, expected)) < len(calls) // 20
    wrong = []
    with registered(sorted({call.op.name for call in calls})) as plugin:
        for call, known in zip(calls, expected, strict=True):
            for _ in range(3 if way == "compiled" else 2):
                found = outcome(lambda: WAYS[way](call))  # noqa: B023
                if not alike(known, found, 5e-2 if way == "autocast" else 1e-6):
                    wrong.append(f"{call.said}\n{known}\n{found}")
                    break
        used = sum(count > 0 for count in plugin.calls.values())
    assert not wrong, "\n".join(wrong)
    assert used > {"compiled": 100, "autocast": 100, "written_out": 100}.get(way, 0)


class Forgetful(dict):
    """A cache whose keys lack one part."""

    def __init__(self, part):
        self.part = part

    def get(self, key):
        return super().get((*key[: self.part], *key[self.part + 1 :]))

    def __setitem__(self, key, value):
        super().__setitem__((*key[: self.part], *key[self.part + 1 :]), value)


FAULTS = {
    "which outputs have a gradient": (2, "var_mean"),
    "which arguments require grad": (3, "prelu"),
    "which tensors of a list require grad": (4, "hstack"),
    "plain values": (5, "cdist"),
}


@IN_MODULES
@pytest.mark.parametrize(("part", "name"), FAULTS.values(), ids=FAULTS)
def test_keys_of_replays_that_tell_too_little_are_found(part, name, monkeypatch):
    calls = calls_of([r for r in RECORDS if r.op == name], (tp.float64,), 1_000)
    assert not differing(calls)[0]
    monkeypatch.setattr(decomposition, "_gradients", Forgetful(part))
    assert differing(calls)[0]


def has_complex(arguments):
    """Return whether a complex number is beside arrays of real ones."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    return complex in map(type, arguments) and not any(a.dtype.kind == "c" for a in arrays)


def test_a_kernel_of_real_tensors_gets_no_complex_number():
    calls = []
    for record in all_records():
        op = get_op(record.op)
        if op.kind != "composite" or op.writes or op.random or tp.float32 not in record.dtypes:
            continue
        for sample in cases.samples_of(record, "cpu", tp.float32)[:3]:
            tensors = list(cases.tensors_in((sample.args, sample.kwargs)))
            if any(tensor.dtype.is_complex for tensor in tensors):
                continue
            for place, value in enumerate(sample.args):
                if type(value) is float:
                    args = (*sample.args[:place], 1 + 2j, *sample.args[place + 1 :])
                    calls.append((op, args, sample.kwargs))
    assert len({op for op, *_ in calls}) > 20
    expected = [outcome(lambda: op.call(*args, **kwargs)) for op, args, kwargs in calls]  # noqa: B023
    names = sorted({op.name for op, *_ in calls})
    with registered(names, has_complex) as plugin:
        for (op, args, kwargs), known in zip(calls, expected, strict=True):
            found = outcome(lambda: op.call(*args, **kwargs))  # noqa: B023
            assert is_error(found) is is_error(known), (op.name, args, known, found)
            if is_error(known):
                assert found[0] == known[0], (op.name, args, known, found)
    assert not any(plugin.calls.values()), plugin.calls
