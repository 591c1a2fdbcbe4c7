"""Decisions are numbered without gaps or repetitions, each page as its heading says."""

import re

from .walk import ROOT

PAGES = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_numbers_run_from_one_on():
    assert [int(page.name[:3]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_headings_begin_with_the_number():
    for page in PAGES:
        heading = page.read_text("utf-8").splitlines()[0]
        assert re.match(rf"# {page.name[:3]}: \S", heading), (page.name, heading)
