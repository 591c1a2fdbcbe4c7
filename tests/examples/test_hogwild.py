"""The example that trains one network from several processes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "hogwild" / "train.py"


@pytest.mark.slow
def test_two_processes_train_one_network():
    command = [sys.executable, str(PROGRAM), "--processes", "2", "--epochs", "4"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    found = re.match(r"test accuracy ([\d.]+)% after 4 epochs of 2 processes", run.stdout)
    # The main process, which takes no step, has 10 % without the others.
    assert float(found[1]) > 70


def test_no_processes_is_an_error():
    command = [sys.executable, str(PROGRAM), "--processes", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 2
    assert "must be at least 1" in run.stderr
