"""Optimizers with drawn options, groups, closures and states that are saved and loaded, beside torch.

``make fuzz`` runs ``TENSORPLUG_FUZZ`` programs.
"""

import math
import os
import warnings
from functools import partial

import pytest

import tensorplug as tp

from . import drawn_programs

torch = pytest.importorskip("torch", reason="values are compared with torch's")

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "400"))
SLICES = 8


@pytest.fixture(autouse=True)
def float64_by_default():
    """Let the numbers that optimizers keep beside the tensors be of double precision."""
    for library in (tp, torch):
        library.set_default_dtype(library.float64)
    yield
    for library in (tp, torch):
        library.set_default_dtype(library.float32)


def plain(value):
    """Return a state with tensors as (dtype, shape, numbers)."""
    if isinstance(value, (tp.Tensor, torch.Tensor)):
        dtype = str(value.dtype).rpartition(".")[2]
        return "tensor", dtype, tuple(value.shape), value.detach().reshape(-1).tolist()
    if isinstance(value, dict):  # torch's Adafactor gets that option by loading
        return {key: plain(item) for key, item in value.items() if key != "differentiable"}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def unlike(a, b, tolerance, where=""):
    """Return where two plain states differ by more than rounding, or None."""
    if isinstance(a, tuple) and isinstance(b, (int, float)) and a[2] == ():
        a = a[3][0]  # LBFGS keeps its rate as a number
    if where.endswith(".step") and isinstance(a, tuple):
        a, b = a[3], b[3]  # torch's fused ones count in float32, ours in the default dtype
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where} keys {sorted(a, key=str)} {sorted(b, key=str)}"
        found = (unlike(a[key], b[key], tolerance, f"{where}.{key}") for key in a)
        return next(filter(None, found), None)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"{where} {a} {b}"
        found = (unlike(x, y, tolerance, where) for x, y in zip(a, b, strict=True))
        return next(filter(None, found), None)
    if isinstance(a, (float, complex)) and isinstance(b, (int, float, complex)) and a != b:
        close = abs(a - b) <= tolerance * (1 + abs(a)) or (a != a and b != b)
        return None if close else f"{where} {a} {b}"
    return None if a == b else f"{where} {a} {b}"


def outcome(function):
    """Return what a function returns, or the type of its error."""
    try:
        return "returned", function()
    except Exception as error:
        return "raised", type(error), str(error)


def to_ours(value):
    """Return a state of torch's as one of ours."""
    if isinstance(value, torch.Tensor):
        dtype = getattr(tp, str(value.dtype).rpartition(".")[2])
        return tp.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: to_ours(item) for key, item in value.items()}
    return [to_ours(item) for item in value] if isinstance(value, list) else value


def difference(seed):
    """Return what differs in a program, or None."""
    program = drawn_programs.Program(seed)
    made = [outcome(lambda lib=lib: drawn_programs.Run(program, lib)) for lib in (torch, tp)]
    if made[0][0] == "raised" or made[1][0] == "raised":
        return compared("making", *made)
    theirs, ours = made[0][1], made[1][1]
    tolerance = 2e-4 if "float32" in program.dtypes else 1e-6 if program.name == "LBFGS" else 1e-9
    for number, event in enumerate(program.events):
        given = [None, None]
        if event[0] == "torch's state":
            state = theirs.optimizer.state_dict()
            given = [(state,), (to_ours(state),)]
        results = [
            outcome(partial(run.apply, event, its))
            for run, its in zip((theirs, ours), given, strict=True)
        ]
        found = compared(f"{number}: {event[0]}", *results)
        if found or results[0][0] == "raised":
            return found
        for what in ("parameters", "state"):
            both = [
                plain(run.parameters if what == "parameters" else run.optimizer.state_dict())
                for run in (theirs, ours)
            ]
            found = unlike(*both, tolerance)
            if found and not (
                what == "state" and program.name == "LBFGS"
            ):  # which has lists of its own
                return f"{number}: {event[0]} {what}", found
    return None


def compared(where, theirs, ours):
    """Return what differs between two outcomes."""
    if theirs[0] != ours[0]:
        if theirs[0] == "raised" and "expected Tensor as element" in theirs[2]:
            return None  # torch's fused SGD, of groups of which some have no momentum yet
        return where, theirs[1:], ours[1:]
    if theirs[0] == "raised":
        kinds = [kind.__name__ for kind in ours[1].__mro__]
        return None if theirs[1].__name__ in kinds else (where, theirs[1:], ours[1:])
    if isinstance(theirs[1], float) and not math.isclose(
        theirs[1], ours[1], rel_tol=1e-4, abs_tol=1e-6
    ):
        return where, theirs[1], ours[1]
    return None


@pytest.mark.parametrize("part", range(SLICES))
def test_a_drawn_program_goes_the_same_way(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(part, COUNT, SLICES):
            found = difference(seed)
            assert found is None, (seed, drawn_programs.Program(seed).name, found)
