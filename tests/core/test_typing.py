"""Type checkers see functions and methods as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py")
WRONG = {
    number
    for number, line in enumerate(PROGRAM.read_text("utf-8").splitlines(), 1)
    if "# wrong" in line
}


def lines_with_errors(*command: str) -> set[int]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if f"{PROGRAM.name}:" in line]
    return {
        int(line.split(f"{PROGRAM.name}:")[1].split(":")[0]) for line in found if "error" in line
    }


@pytest.mark.slow
def test_mypy():
    pytest.importorskip("mypy", reason="mypy is not installed")
    assert lines_with_errors(sys.executable, "-m", "mypy", str(PROGRAM)) == WRONG


@pytest.mark.slow
def test_pyright():
    command = Path(sys.executable).with_name("pyright")
    if not command.exists():
        pytest.skip("pyright is not installed")
    assert lines_with_errors(str(command), str(PROGRAM)) == WRONG
