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


@pytest.mark.slow
def test_random_calls():
    seeds = range(max(1, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 500))
    counts, differ = ran("random_calls.py", *map(str, seeds))
    assert min(counts.values()) > 1500 * len(seeds)
    assert not differ, "\n".join(differ)


@pytest.mark.slow
def test_random_functions_of_networks():
    seeds = range(max(1, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 500))
    count, differ = ran("random_functions.py", *map(str, seeds))
    assert count > 1500 * len(seeds)
    assert not differ, "\n".join(differ)


@pytest.mark.slow
def test_random_modules():
    seeds = range(max(1, int(os.environ.get("TENSORPLUG_FUZZ", "0")) // 500))
    count, differ = ran("random_modules.py", *map(str, seeds))
    assert count > 2000 * len(seeds)
    assert not differ, "\n".join(differ)
