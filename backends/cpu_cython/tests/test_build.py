"""The build, where something is missing."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]

pytest.importorskip("Cython", reason="the build needs Cython")
pytest.importorskip("setuptools", reason="the build needs setuptools")


def test_without_a_compiler_the_build_says_what_it_takes(tmp_path):
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


@pytest.mark.parametrize(
    "headers",
    [["dnnl.h", "dnnl_config.h", "oneapi/dnnl/dnnl.h", "oneapi/dnnl/dnnl_config.h"], ["oneapi/dnnl/dnnl.h"]],
)  # fmt: skip
def test_where_the_headers_of_onednn_are(tmp_path, monkeypatch, headers):
    packages = tmp_path / "lib" / "python3" / "site-packages"
    record = packages / "onednn_devel_cpu_gomp-1.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("".join([f"../../../include/{name},,\n" for name in headers]))
    for name in headers:
        header = tmp_path / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr("Cython.Build.cythonize", lambda modules, **_: modules)
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    monkeypatch.chdir(FOLDER)
    assert runpy.run_path("setup.py")["ONEDNN_INCLUDE"] == tmp_path / "include"
