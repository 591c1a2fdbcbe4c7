"""Coalesced collectives, splits of groups, collectives with derivatives, checkpoints in the background."""

import pytest
import ranks

FILE = "checks_collectives.py"

pytestmark = [
    pytest.mark.skipif(bool(ranks.missing()), reason=ranks.missing()),
    pytest.mark.xdist_group("ranks-collectives"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return ranks.run(FILE, 2, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("name", ranks.names(FILE))
def test_in_two_processes(said, name):
    assert not said[name], said[name]
