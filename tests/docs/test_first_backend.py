"""The walk to a first device works as its page says."""

import pytest

from tensorplug.cli.scaffold import package

from .walk import ROOT, Walk, blocks

PAGE = ROOT / "docs" / "backends" / "first_backend.md"


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
def test_the_page(tmp_path):
    walk = Walk(tmp_path)
    walk.go(PAGE)
    assert (walk.here / "pyproject.toml").exists()


def test_it_shows_the_file_that_is_generated():
    generated = dict(package("backend", "abacus"))
    _, file, text = next(block for block in blocks(PAGE) if block[1])
    assert text == generated[file]
