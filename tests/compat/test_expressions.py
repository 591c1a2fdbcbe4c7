"""Names that libraries import, and what was wrong with them: expressions give what they give with torch."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "expressions.py"


def lines(*command):
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def said():
    """What the expressions gave on torch and on tensorplug, and last the counts of operations."""
    try:
        version("torch")
    except PackageNotFoundError:
        pytest.skip("torch is not installed")
    both = lines(PROGRAM), lines("-m", "tensorplug.compat", PROGRAM)
    return [[json.loads(line) for line in found] for found in both]


@pytest.mark.slow
def test_expressions(said):
    expected, got = (found[:-1] for found in said)
    assert len(expected) > 100
    assert [line for line, value in expected if value.startswith("!")] == []
    differing = [
        f"{line}\n  torch {value}\n  here  {mine[1]}"
        for (line, value), mine in zip(expected, got, strict=True)
        if mine[1] != value
    ]
    assert not differing, "\n".join(differing)


#: What torch counts otherwise: on the CPU it has no formulas for its attention and its LSTM.
UNCOUNTED = ("attention", "lstm")


@pytest.mark.slow
def test_flop_counts(said):
    expected, got = (found[-1] for found in said)
    assert len(expected) == len(got) == 28
    for name, counts in expected.items():
        if not name.startswith(UNCOUNTED):
            assert got[name] == counts, name
    # 2 directions, 5 steps of 2 sequences: of 3 and 8 features to 16 gates; beside them 4 hidden ones, of
    # which the backward pass makes products, too.
    lstm = got["lstm False"]["counts"]["LSTM"]
    assert lstm["aten.addmm"] == 2 * 5 * 2 * 2 * 16 * (3 + 8)
    assert lstm["aten.mm"] > 2 * 2 * 5 * 2 * 2 * 16 * 4


def test_what_refuses_is_not_there():
    found = lines("-c", """if True:
        from tensorplug import compat
        from tensorplug.compat import finder, refusals
        compat.install()
        for module, names in refusals.REFUSALS.items():
            counterpart = finder._counterpart(module)
            for name in names:
                if counterpart is not finder._MISSING and hasattr(counterpart, name):
                    print(f"{module}.{name}")""")  # fmt: skip
    assert [name for name in found if "istributed" not in name] == []
