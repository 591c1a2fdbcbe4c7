"""Calls that once differed from torch: each by an expectation of its own, and beside torch."""

from pathlib import Path

import listed_accepted
import listed_behaviours
import listed_data
import listed_gradients
import listed_numbers
import listed_operands
import listed_refused
import listed_rows as rows
import listed_transforms
import pytest

import tensorplug as tp

TABLES = (
    listed_gradients,
    listed_numbers,
    listed_accepted,
    listed_refused,
    listed_behaviours,
    listed_data,
    listed_operands,
    listed_transforms,
)
ROWS = {name: row for table in TABLES for name, row in table.ROWS.items()}
DEVIATIONS = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text("utf-8")


KNOWN = [name for name, row in ROWS.items() if row.expected is not rows.TORCH_SAYS]


@pytest.mark.parametrize("name", KNOWN)
def test_call(name):
    row = ROWS[name]
    ours = rows.outcome(row.call, tp)
    assert rows.holds(ours, row.expected), ours


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
