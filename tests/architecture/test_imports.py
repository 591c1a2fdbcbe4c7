"""Imports point one way: import-linter's contracts, and what they can't say."""

import ast
import functools
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
FOLDERS = sorted(f for f in CONFIG["setuptools"]["package-dir"].values() if "/" not in f)
ABOVE_THE_LINE = sorted(
    path
    for folder in (*FOLDERS, "src/tensorplug")
    for path in (ROOT / folder).rglob("*.py")
    if not any(parent.is_symlink() for parent in path.parents)
)
BACKENDS = sorted(ROOT.glob("backends/*/src/**/*.py"))

# Only the conversion of host data and printing see NumPy; `testing`, the reference, is left out below.
SEE_NUMPY = {
    "core/tensor/host.py",
    "core/tensor/host_data.py",
    "core/tensor/host_memory.py",
    "core/tensor/printing.py",
}
# The adapter of array libraries carries data between them and the host.
SEE_NUMPY |= {f"plugin/standard/{file}.py" for file in ("__init__", "runtime", "stores")}
# Sobol sequences come from a table of SciPy's; torch draws them on the host, too.
SEE_NUMPY |= {"src/tensorplug/quasirandom.py", "src/tensorplug/serialization/numpy_values.py"}
# Decoded images come from and go to Pillow; rows of boxes are computed where the registered kernels are.
SEE_NUMPY |= {f"src/tensorplug/compat/torchvision/{file}.py" for file in ("images", "rows")}
SEE_NUMPY |= {"src/tensorplug/compat/torchaudio/filters.py"}
ARRAY_LIBRARIES = {"numpy", "scipy", "cupy", "jax", "torch"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def for_types_only(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return ast.unparse(node.test).endswith("TYPE_CHECKING")


def statements(node: ast.AST, *, with_types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements anywhere below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif with_types or not for_types_only(child):
            yield from statements(child, with_types=with_types)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def absolute_imports(path: Path, *, with_types: bool = True) -> Iterator[str]:
    """The full names that a file imports absolutely, a ``from`` import's names included."""
    for node in statements(parsed(path), with_types=with_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(imported: str, package: str) -> bool:
    return imported == package or imported.startswith(f"{package}.")


def test_import_linter_passes():
    command = Path(sys.executable).with_name("lint-imports")
    backends = map(str, ROOT.glob("backends/*/src"))  # which need not be installed
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(backends)}
    done = subprocess.run(
        [command, "--no-cache"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", ABOVE_THE_LINE, ids=name)
def test_nothing_above_the_plugin_line_computes_with_an_array_library(path):
    if name(path) in SEE_NUMPY or name(path).startswith("testing/"):
        return
    imported = set(absolute_imports(path, with_types=False))
    assert {module for module in imported if module.split(".")[0] in ARRAY_LIBRARIES} == set()


@pytest.mark.parametrize("path", BACKENDS, ids=name)
def test_a_backend_imports_only_the_plugin_api(path):
    imported = {module for module in absolute_imports(path) if is_within(module, "tensorplug")}
    assert {module for module in imported if not is_within(module, "tensorplug.plugin")} == set()


@pytest.mark.parametrize("path", ABOVE_THE_LINE, ids=name)
def test_the_facade_is_imported_by_nothing_below_it(path):
    if name(path).startswith(("src/", "testing/")):
        return
    packages = tuple(f"tensorplug.{folder}" for folder in FOLDERS)
    imported = {module for module in absolute_imports(path) if is_within(module, "tensorplug")}
    assert {m for m in imported if not any(is_within(m, package) for package in packages)} == set()


@pytest.mark.parametrize("path", ABOVE_THE_LINE, ids=name)
def test_a_relative_import_stays_in_its_package(path):
    if name(path).startswith("src/"):
        return
    depth = len(path.relative_to(ROOT).parts) - 1
    levels = {
        node.level
        for node in statements(parsed(path), with_types=True)
        if isinstance(node, ast.ImportFrom)
    }
    assert max(levels, default=0) <= depth


def test_a_deferred_import_says_why():
    """Inside the package, an import in a function saves time, or is of a module that needs this one."""
    silent = []
    for path in ABOVE_THE_LINE:
        lines = path.read_text("utf-8").splitlines()
        if name(path).split("/")[0] not in ("core", "autograd", "nn", "optim", "amp"):
            continue
        for function in ast.walk(parsed(path)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in statements(function, with_types=False):
                if not isinstance(node, ast.ImportFrom):
                    continue
                inside = node.level > 0 or (node.module or "").startswith("tensorplug")
                if inside and "# on first use: " not in lines[node.lineno - 1]:
                    silent.append(f"{name(path)}:{node.lineno}")
    assert not silent, silent


SAVES_TIME = "# on first use: saves import time"


def test_imports_within_functions_of_core_save_time():
    """Any other is a circle of modules, which the layers of core rule out."""
    circles = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        lines = path.read_text("utf-8").splitlines()
        for function in ast.walk(parsed(path)):
            if not isinstance(function, ast.FunctionDef):
                continue
            circles += [
                f"{name(path)}:{node.lineno}: {ast.unparse(node)}"
                for node in ast.walk(function)
                if isinstance(node, ast.ImportFrom)
                and node.level
                and not lines[node.lineno - 1].endswith(SAVES_TIME)
            ]
    assert not circles, "\n".join(circles)
