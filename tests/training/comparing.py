"""Comparing what two runs of a training program show, and finding the shortest one that differs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plans import Plan, rough, simpler
from training import Trace, train

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError)


def outcome(lib: Any, plan: Plan) -> Trace | Exception:
    """Return what a program shows, or what it raises."""
    with lib.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trace = train(lib, plan)
            if rough(plan):
                return trace[: [name for name, _ in trace].index("loss 0")]
            return trace
        except ERRORS as error:
            return error


def difference(ours: Any, theirs: Any, tolerance: float) -> str:
    """Return in what two traces differ first."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if type(ours) is type(theirs):
            return ""
        shown = [repr(t)[:300] if isinstance(t, Exception) else "runs" for t in (ours, theirs)]
        return " | ".join(shown)
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        names = [[name for name, _ in trace] for trace in (ours, theirs)]
        return f"{sorted(set(names[0]) ^ set(names[1]))}, or the order"
    for (name, mine), (_, other) in zip(ours, theirs, strict=True):
        if (mine is None) != (other is None):
            return f"{name}: {mine} | {other}"
        if mine is None:
            continue
        if mine.shape != other.shape:
            return f"{name}: shapes {mine.shape} | {other.shape}"
        scale = np.abs(other[np.isfinite(other)]).max(initial=0)
        if not np.allclose(
            mine, other, rtol=tolerance, atol=tolerance * (scale + 1e-2), equal_nan=True
        ):
            apart = np.abs(mine - other).max()
            return f"{name}: {mine.ravel()[:4]} | {other.ravel()[:4]}, apart by {apart:.2g}"
    return ""


def tolerance(plan: Plan) -> float:
    """Return how far two runs of a program in float64 may be apart."""
    return 1e-6


def check(plan: Plan, differs: Callable[[Plan], str]) -> None:
    """Fail with the simplest program that differs as this one does."""
    if not differs(plan):
        return
    smaller: Plan | None = plan
    while smaller is not None:
        plan, smaller = smaller, next((p for p in simpler(smaller) if differs(p)), None)
    pytest.fail(f"{plan}\n{differs(plan)}")
