"""Calls that once differed from torch: each gives what it gives there, or is told apart in known.txt.

They run in a process of their own, as they seed generators and change what torch keeps.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: What differs, and why; docs/deviations.md says it to users.
KNOWN = {line for line in (HERE / "known.txt").read_text("utf-8").splitlines() if line[:1] != "#"}


def ran(name, *given):
    """Return what a program of this folder prints last."""
    pytest.importorskip("torch", reason="torch is the reference of these tests")
    program = [sys.executable, "-W", "ignore", str(HERE / name), *given]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_calls():
    count, differ = ran("differing_calls.py")
    assert count > 1700
    assert not set(differ) - KNOWN


def drawn(name):
    """Return what a program of random calls prints, and how many seeds it was given."""
    seeds = max(1, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 500)
    return *ran(name, *map(str, range(seeds))), seeds


@pytest.mark.slow
def test_random_calls():
    counts, differ, seeds = drawn("random_calls.py")
    assert min(counts.values()) > 1500 * seeds
    assert not differ, "\n".join(differ)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("orders_of_results.py", 4000),
        ("random_edges.py", 850),
        ("random_functions.py", 3500),
        ("random_layouts.py", 1100),
        ("random_modules.py", 5000),
        ("random_writes.py", 1300),
    ],
)
def test_random_parts_of_networks_and_writes(name, least):
    count, differ, seeds = drawn(name)
    assert count > least * seeds
    assert not differ, "\n".join(differ)
