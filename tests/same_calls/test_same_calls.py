"""Calls that once differed from torch: each gives what it gives there, or is told apart in KNOWN."""

from pathlib import Path

import call_outcomes
import calls_accepted
import calls_refused
import calls_values
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="torch is the reference of these tests")

CASES = calls_values.V | calls_accepted.A | calls_refused.R
PARTS = 8

#: What differs, and why; docs/deviations.md says it to users.
KNOWN = {
    line
    for line in (Path(__file__).parent / "known.txt").read_text().splitlines()
    if line[:1] != "#"
}


@pytest.mark.parametrize("part", range(PARTS))
def test_calls(part):
    names = sorted(CASES)[part::PARTS]
    differ = [
        name
        for name in names
        if not call_outcomes.same(
            call_outcomes.outcome(CASES[name], torch), call_outcomes.outcome(CASES[name], tp)
        )
    ]
    assert differ == [name for name in names if name in KNOWN]
