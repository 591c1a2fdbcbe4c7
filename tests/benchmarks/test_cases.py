"""Every case of the suite runs, and computes what torch computes."""

import pytest
from benchmarks.cases import all_cases
from benchmarks.harness import largest_difference

import tensorplug as tp

CASES = list(all_cases())


def test_names_are_unique():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs(case):
    function = case.make(tp)
    function()
    function()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_agrees_with_torch(case):
    torch = pytest.importorskip("torch")
    assert largest_difference(case.make(tp), case.make(torch)) <= case.tolerance
