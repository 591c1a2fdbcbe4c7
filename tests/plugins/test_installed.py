"""Plugins as packages: built, installed into an empty environment, and found there.

Each of the packages in ``packages/`` is one that a stranger could have written; ``driver.py`` says
what has to hold.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = sorted(path for path in (HERE / "packages").iterdir() if path.is_dir())
NOT_SOURCES = (".git", ".venv*", "__pycache__", ".*_cache", "*.egg-info", "build", "dist", "out")
CHECKS = [
    node.name
    for node in ast.parse((HERE / "driver.py").read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list
]

# One worker builds and installs, once.
pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.xdist_group("plugins")]


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """The wheels of tensorplug and of the packages, built from copies of their sources."""
    work = tmp_path_factory.mktemp("wheels")
    sources = []
    for source in (ROOT, *PACKAGES):
        sources.append(work / "sources" / source.name)
        ignored = shutil.ignore_patterns(*NOT_SOURCES)
        shutil.copytree(source, sources[-1], symlinks=True, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    pure = os.environ | {"TENSORPLUG_PURE": "1"}  # what is tested here needs no compiling
    wheels = ["--wheel-dir", work / "dist", *sources]
    run(*pip, "--no-deps", "--no-build-isolation", *wheels, env=pure)
    return sorted((work / "dist").glob("*.whl"))


@pytest.fixture(scope="session")
def python(wheels, tmp_path_factory):
    """The interpreter of an environment in which all of them are installed."""
    work = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", work)
    python = work / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        run(*pip, "-r", ROOT / "requirements.txt")
    except AssertionError as error:
        if os.environ.get("CI") == "true" or "No matching distribution" not in str(error):
            raise
        pytest.skip("the dependencies can't be installed: no package index can be reached")
    run(*pip, "--no-deps", *wheels)
    return python


@pytest.mark.parametrize("name", CHECKS)
def test_in_an_environment_with_plugins(python, name):
    run(python, "-I", HERE / "driver.py", name)


def test_every_package_is_installed(wheels):
    names = {path.name.split("-")[0] for path in wheels}
    assert names == {"tensorplug", *(path.name for path in PACKAGES)}


def test_no_package_touches_core(python):
    """The installed files are those of the wheel, and the packages import the plugin API alone."""
    script = (
        "import importlib.metadata as m, base64, hashlib, sys\n"
        "for f in m.files('tensorplug'):\n"
        "    if f.hash is not None:\n"
        "        d = hashlib.new(f.hash.mode, f.read_binary()).digest()\n"
        "        assert base64.urlsafe_b64encode(d).rstrip(b'=').decode() == f.hash.value, f\n"
    )
    run(python, "-I", "-c", script)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_imports_the_plugin_api_alone(package):
    imported = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module)
            elif isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
    public = {"tensorplug.plugin", "tensorplug.plugin.array_kernels"}
    assert {name for name in imported if name.startswith("tensorplug")} <= public


def test_the_log_is_asked_for_in_the_environment(python):
    environment = {**os.environ, "TENSORPLUG_LOG": "dispatch"}
    script = "import tensorplug as tp; tp.ones(2) * 2"
    command = [str(python), "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = [line for line in done.stderr.splitlines() if line.startswith("tensorplug.dispatch: ")]
    assert any(" mul on cpu, float32: kernel of cpu_numpy (tensorplug" in line for line in lines)
