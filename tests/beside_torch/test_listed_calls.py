"""Calls that once differed from torch: each by an expectation of its own, and beside torch."""

from pathlib import Path

import listed_accepted
import listed_gradients
import listed_numbers
import listed_refused
import listed_rows as rows
import pytest

import tensorplug as tp

ROWS = listed_gradients.ROWS | listed_numbers.ROWS | listed_accepted.ROWS | listed_refused.ROWS
DEVIATIONS = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text("utf-8")


@pytest.mark.parametrize("name", ROWS)
def test_call(name):
    row = ROWS[name]
    ours = rows.outcome(row.call, tp)
    known = row.expected is not rows.TORCH_SAYS
    assert not known or rows.holds(ours, row.expected), ours
    if not known:
        pytest.importorskip("torch", reason="torch alone says what this row gives")


@pytest.mark.parametrize("name", ROWS)
def test_call_beside_torch(name):
    torch = pytest.importorskip("torch", reason="the library that these rows are compared with")
    row = ROWS[name]
    tp.manual_seed(0), torch.manual_seed(0)
    ours, theirs = rows.outcome(row.call, tp), rows.outcome(row.call, torch)
    if row.deviation:
        assert row.deviation in DEVIATIONS
        assert not rows.agree(ours, theirs), "no longer deviates"
    else:
        assert rows.agree(ours, theirs), (ours, theirs)
