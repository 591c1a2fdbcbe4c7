"""Random training programs run in torch as in tensorplug: networks, losses, optimizers, everything around.

After five steps parameters, buffers, states of optimizers, losses, rates and gradients are compared.
``make fuzz`` runs ``TENSORPLUG_FUZZ`` programs.
"""

from __future__ import annotations

import os

import pytest
from building_blocks import libraries
from comparing import check, difference, outcome, tolerance
from plans import Plan, drawn

COUNT = int(os.environ.get("TENSORPLUG_FUZZ", "32"))
PARTS = 4
#: What torch refuses: second derivatives that it does not have, writes to what it saves and ours does
#: not, gradients that lie channels last in LBFGS.
LESS = ("is not implemented", "modified by an inplace operation", "view size is not compatible")


def differs(plan: Plan) -> str:
    """Return in what a program differs from torch's."""
    found = libraries()
    ours, theirs = (outcome(found[name], plan) for name in ("tensorplug", "torch"))
    if isinstance(theirs, Exception) and any(told in str(theirs) for told in LESS):
        return ""
    return difference(ours, theirs, tolerance(plan))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part: int) -> None:
    pytest.importorskip("torch", reason="torch is the reference of this test")
    for seed in range(part, COUNT, PARTS):
        check(drawn(seed, dropout=False), differs)
