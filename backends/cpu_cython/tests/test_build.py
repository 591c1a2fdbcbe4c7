"""The build, where something is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]


def test_without_a_compiler_the_build_says_what_it_takes(tmp_path):
    pytest.importorskip("Cython", reason="the build needs Cython")
    pytest.importorskip("setuptools", reason="the build needs setuptools")
    built = shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(FOLDER, tmp_path / "copy", ignore=built)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path / "copy",
        env={**os.environ, "CC": str(tmp_path / "no_such_compiler")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "tensorplug-cpu-cython could not be compiled" in done.stderr
    assert "It takes a C compiler with OpenMP" in done.stderr
    assert "Traceback" not in done.stderr
