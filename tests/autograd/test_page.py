"""The examples of docs/autograd.md."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "autograd.md"


def test_the_examples_are_right():
    failed, run = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert run > 20
    assert not failed
