"""The wheel and the source distribution hold what they should, and the wheel works by itself."""

import configparser
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = CONFIG["project"]
DEPENDENCIES = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
FAST_BACKEND = "tensorplug-cpu-cython"
FOLDER_OF: dict[str, str] = CONFIG["tool"]["setuptools"]["package-dir"]

pytestmark = pytest.mark.xdist_group("distribution")  # one worker builds, once

SHIPPED = {".py", ".pxd", ".pyi", ".typed"}
TEMPLATES = PurePosixPath("cli", "templates")  # of the packages that the command writes
COMPILED = {".so", ".pyd"}
NOT_SOURCES = (".git", ".venv*", "__pycache__", ".*_cache", "*.egg-info", "build", "dist", "out")

# What the source distribution holds beside the packages.
ABOUT = ["CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"]
ABOUT += ["requirements.txt", "setup.py"]
ABOUT += ["PKG-INFO", "setup.cfg"]  # written by the build

SMOKE_TEST = """
import sys
import tensorplug as tp

assert tp.__file__.startswith(sys.prefix), tp.__file__
a = tp.tensor([1.0, 2.0], requires_grad=True)
(a + a * a).sum().backward()
assert a.grad.tolist() == [3.0, 5.0], a.grad
print(tp.__version__)
"""


@dataclass(frozen=True)
class Built:
    """The distributions built from a copy of the sources."""

    sources: Path
    sdist: Path
    wheel: Path  # built from the unpacked sdist, as an installer would
    wheel_from_tree: Path  # built where the links are


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | {"TENSORPLUG_PURE": "1"},  # `make test-compiled` builds the other variant
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Built:
    work = tmp_path_factory.mktemp("distribution")
    sources = work / "sources"
    # A copy, since a build leaves folders behind that the next one would pack along.
    shutil.copytree(ROOT, sources, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    build = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir"]
    run(*build, work / "dist", cwd=sources)
    shutil.rmtree(sources / "build", ignore_errors=True)
    run(*build, work / "from_tree", "--wheel", cwd=sources)
    return Built(
        sources,
        sdist=next((work / "dist").glob("*.tar.gz")),
        wheel=next((work / "dist").glob("*.whl")),
        wheel_from_tree=next((work / "from_tree").glob("*.whl")),
    )


def source_files(sources: Path) -> dict[str, str]:
    """Each file that a package should ship: its path in the wheel and in the repository."""
    facade = sources / FOLDER_OF["tensorplug"]
    templates = [path.relative_to(facade) for path in (facade / TEMPLATES).rglob("*.template")]
    return {f"tensorplug/{path}": f"{FOLDER_OF['tensorplug']}/{path}" for path in templates} | {
        PurePosixPath(*package.split("."), path.name).as_posix(): f"{folder}/{path.name}"
        for package, folder in FOLDER_OF.items()
        for path in (sources / folder).iterdir()
        if path.suffix in SHIPPED
    }


def files_in_wheel(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def metadata(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (path for path in archive.namelist() if path.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()


@pytest.mark.slow
def test_the_wheel_holds_each_file_once(built):
    files = [path for path in files_in_wheel(built.wheel) if ".dist-info/" not in path]
    python = [path for path in files if PurePosixPath(path).suffix not in COMPILED]
    assert sorted(python) == sorted(source_files(built.sources))


@pytest.mark.slow
def test_the_wheel_holds_the_licence(built):
    assert metadata(built.wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text("utf-8")


def test_the_wheel_is_the_same_from_the_tree_and_from_the_source_distribution(built):
    assert sorted(files_in_wheel(built.wheel)) == sorted(files_in_wheel(built.wheel_from_tree))


def test_the_source_distribution_holds_each_file_once(built):
    with tarfile.open(built.sdist) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
    assert [member.name for member in members if not member.isreg()] == []
    files = [PurePosixPath(*PurePosixPath(member.name).parts[1:]).as_posix() for member in members]
    files = [path for path in files if ".egg-info/" not in path]
    assert sorted(files) == sorted([*ABOUT, *source_files(built.sources).values()])


def test_the_metadata_is_what_the_project_says(built):
    found = email.message_from_string(metadata(built.wheel, "METADATA"))
    assert found["Name"] == "tensorplug"
    assert found["Version"] == PROJECT["version"]
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == ">=3.11"
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def required(wheel: Path) -> dict[str, str]:
    """What a wheel requires without an extra: each distribution's name, and its marker."""
    lines = email.message_from_string(metadata(wheel, "METADATA")).get_all("Requires-Dist", [])
    parts = [line.partition(";") for line in lines if "extra ==" not in line]
    return {re.match(r"[\w-]+", name)[0]: marker.strip() for name, _, marker in parts}  # type: ignore[index]


def test_what_is_released_requires_the_fast_backend_where_its_wheels_are(built):
    """A clone does without: no index is sure to have it."""
    names = {re.match(r"[\w-]+", line)[0]: "" for line in DEPENDENCIES}  # type: ignore[index]
    assert required(built.wheel_from_tree) == names
    marker = 'sys_platform == "linux" and platform_machine == "x86_64"'
    assert required(built.wheel) == names | {FAST_BACKEND: marker}


def test_cpu_numpy_is_declared_as_any_plugin_would_be(built):
    entries = configparser.ConfigParser(delimiters=("=",))
    entries.optionxform = str  # type: ignore[assignment, method-assign]
    entries.read_string(metadata(built.wheel, "entry_points.txt"))
    plugins = dict(entries["tensorplug.v1"])
    assert plugins == {
        "cpu.numpy": "tensorplug_cpu_numpy:plugin",
        "extension.amp": "tensorplug.amp.plugin:plugin",
        "extension.nn": "tensorplug.nn.plugin:plugin",
        "extension.optim": "tensorplug.optim.plugin:plugin",
        "extension.graph": "tensorplug.graph.plugin:plugin",
        "extension.sparse": "tensorplug.sparse.plugin:plugin",
    }
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", name) for name in plugins)


DISTRIBUTIONS = [ROOT, *[path.parent for path in sorted(ROOT.glob("backends/*/pyproject.toml"))]]
DISTRIBUTIONS += [path.parent for path in sorted(ROOT.glob("examples/plugins/*/pyproject.toml"))]


def test_the_backends_have_the_version_of_the_root():
    for folder in ROOT.glob("backends/*/pyproject.toml"):
        project = tomllib.loads(folder.read_text("utf-8"))["project"]
        assert project["version"] == PROJECT["version"]
        assert f"tensorplug>={PROJECT['version']}" in project["dependencies"][0]
    assert f">={PROJECT['version']}," in (ROOT / "setup.py").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
    assert set(re.findall(r"-(\d[\w.]*)\.tar\.gz", workflow)) == {PROJECT["version"]}


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_a_backend_is_one_plugin(folder):
    """Its kernels for the ops of extensions wait until they are loaded, and need no plugin of their own."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    names = project["entry-points"]["tensorplug.v1"]
    backends = [name for name in names if not name.startswith("extension.")]
    assert len(backends) <= 1
    assert folder == ROOT or len(names) == 1
    assert all(name.count(".") == 1 for name in names)


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        run(*pip, "-r", ROOT / "requirements.txt", cwd=tmp_path)
    except AssertionError as error:
        if os.environ.get("CI") == "true" or "No matching distribution" not in str(error):
            raise
        pytest.skip("the dependencies can't be installed: no package index can be reached")
    run(*pip, "--no-deps", built.wheel, cwd=tmp_path)
    printed = run(python, "-I", "-W", "error", "-c", SMOKE_TEST, cwd=tmp_path)
    assert printed.strip() == PROJECT["version"]
