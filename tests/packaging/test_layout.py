"""The lists in pyproject.toml and the folders of the repository agree."""

import os
import tomllib
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
PACKAGES: list[str] = CONFIG["setuptools"]["packages"]
FOLDER_OF: dict[str, str] = CONFIG["setuptools"]["package-dir"]
NOT_PACKAGES = {"benchmarks", "docs", "examples", "tests"}
ROOT_FOLDERS = sorted({path.parent.name for path in ROOT.glob("[a-z]*/__init__.py")} - NOT_PACKAGES)


def packages_below(folder: str, package: str) -> dict[str, str]:
    """Each package below a folder and the folder it lies in; links aren't followed."""
    found = {}
    for current, _, files in os.walk(ROOT / folder):
        if any(file.endswith(".py") for file in files):
            below = Path(current).relative_to(ROOT / folder).parts
            found[".".join([package, *below])] = PurePosixPath(folder, *below).as_posix()
    return found


def test_each_folder_is_listed_and_each_listed_folder_is_there():
    found = {
        "": "src",  # for the single module below
        **packages_below("src/tensorplug", "tensorplug"),
        **packages_below("backends/cpu_numpy/src/tensorplug_cpu_numpy", "tensorplug_cpu_numpy"),
    }
    for folder in ROOT_FOLDERS:
        found |= packages_below(folder, f"tensorplug.{folder}")
    assert found == FOLDER_OF
    assert sorted(found.keys() - {""}) == sorted(PACKAGES)
    assert [f"{path.stem}" for path in (ROOT / "src").glob("*.py")] == CONFIG["setuptools"][
        "py-modules"
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_folder_is_a_regular_package(package):
    assert (ROOT / FOLDER_OF[package] / "__init__.py").is_file()


@pytest.mark.parametrize("package", ["tensorplug", "tensorplug_cpu_numpy"])
def test_each_distribution_package_is_marked_as_typed(package):
    assert (ROOT / FOLDER_OF[package] / "py.typed").is_file()
    assert CONFIG["setuptools"]["package-data"][package][0] == "py.typed"


def test_each_root_folder_has_a_link_for_static_tools():
    found = (ROOT / "src/tensorplug").iterdir()
    links = {path.name: path.readlink().as_posix() for path in found if path.is_symlink()}
    assert links == {folder: f"../../{folder}" for folder in ROOT_FOLDERS}


def test_pyright_checks_each_root_folder():
    checked = CONFIG["pyright"]["include"]
    assert {f"src/tensorplug/{folder}" for folder in ROOT_FOLDERS} <= set(checked)
    assert [path for path in checked if not (ROOT / path).is_dir()] == []


def test_the_source_distribution_leaves_each_link_out():
    manifest = (ROOT / "MANIFEST.in").read_text("utf-8").splitlines()
    assert {f"prune src/tensorplug/{folder}" for folder in ROOT_FOLDERS} <= set(manifest)


def test_the_bare_name_of_each_root_folder_is_banned():
    banned = CONFIG["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert sorted(banned) == ROOT_FOLDERS
