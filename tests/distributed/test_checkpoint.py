"""Checkpoints of divided state, read under other divisions."""

import pytest
import ranks

FILE = "checks_checkpoint.py"

pytestmark = [
    pytest.mark.skipif(bool(ranks.missing()), reason=ranks.missing()),
    pytest.mark.xdist_group("ranks-checkpoint"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return ranks.run(FILE, 2, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("name", ranks.names(FILE))
def test_in_two_processes(said, name):
    assert not said[name], said[name]
