"""Calls that stand in text files, a line each, beside torch: ``t`` is the library, ``np`` NumPy.

What torch's own tests check of creation, indexing, reductions and linear algebra, most of it at the edges:
no elements, no dimensions, wrong dtypes, arguments that do not fit together. A line that begins with ``~``
differs, for the reason in docs/deviations.md that follows it.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from listed_rows import agree, outcome

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the library that these calls are compared with")
FILES = sorted(Path(__file__).parent.glob("calls_*.txt"))
DEVIATIONS = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text("utf-8")


def read(path):
    """Yield each call as text and compiled, and the reason for which it differs."""
    for line in path.read_text("utf-8").splitlines():
        text, _, reason = line.removeprefix("~ ").partition("  # ")
        assert bool(reason) == line.startswith("~ "), line
        yield text, compile(text, path.name, "eval"), reason


def result(code, library):
    library.manual_seed(0)
    return outcome(lambda t: eval(code, {"t": t, "np": np}), library)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_calls(path):
    different = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text, code, reason in read(path):
            theirs, ours = result(code, torch), result(code, tp)
            if agree(ours, theirs) is bool(reason) or reason not in DEVIATIONS:
                different[text] = (theirs, ours)
    assert not different


def test_there_are_many():
    assert sum(len(list(read(path))) for path in FILES) > 800
