"""Type checkers see functions and methods as they are."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug import _namespaces
from tensorplug.core.dispatch import op_registry

ROOT = Path(__file__).parents[2]
PROGRAMS = [Path(__file__).with_name(f"typed_{name}.py") for name in ("program", "training")]
WRONG = {
    (program.name, number)
    for program in PROGRAMS
    for number, line in enumerate(program.read_text("utf-8").splitlines(), 1)
    if "# wrong" in line
}


MODULES = (
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "linalg", "fft", "special", "optim",
    "optim.lr_scheduler", "optim.swa_utils", "autograd", "func", "data", "utils.data", "utils.checkpoint",
    "distributions", "distributions.constraints", "amp", "signal.windows", "random", "profiler",
    "serialization", "masked", "quasirandom", "testing", "plugins", "plugin", "safetensors", "Tensor",
)  # fmt: skip
# Members that a device type, or an alias, adds to Tensor as it is registered.
ADDED = re.compile(
    r"tp\.Tensor\.(is_)?(cpu|cuda|mps|xpu|unsafe_\w+)$|tp\.Tensor\.(\w*(sparse|coalesce|indices)\w*|dense_dim|hardshrink|prelu|smm|values)$"
)


def public_names():
    """Yield each public name of each module, dotted."""
    for name in dir(tp):
        if not name.startswith("_") and name not in ("annotations", "core"):
            yield f"tp.{name}"
    for path in MODULES:
        owner = tp
        for part in path.split("."):
            owner = getattr(owner, part, None) or importlib.import_module(f"tensorplug.{path}")
        for name in getattr(owner, "__all__", None) or dir(owner):
            value = getattr(owner, name)
            ours = getattr(value, "__module__", None) or "tensorplug"
            own = owner is tp.Tensor or hasattr(owner, "__all__") or not foreign(owner, value)
            if name[0] != "_" and name != "annotations" and ours.startswith("tensorplug") and own:
                yield f"tp.{path}.{name}"


def foreign(owner, value):
    """Return whether a module without ``__all__`` only uses a value."""
    return inspect.ismodule(value) or getattr(value, "__module__", None) != owner.__name__


@pytest.fixture(scope="module")
def every_name(tmp_path_factory):
    # In a process of its own: other tests add names, and import what is found on first use.
    told = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    lines = [f"print({name})" for name in told.stdout.split() if not ADDED.match(name)]
    assert len(lines) > 1500
    program = tmp_path_factory.mktemp("typing") / "typed_names.py"
    imports = [
        "import tensorplug as tp",
        *[f"import tensorplug.{m}" for m in MODULES[:-1] if "." in m],
    ]
    imports = [line for line in imports if "windows" not in line]
    program.write_text("\n".join([*imports, *lines]), "utf-8")
    return program


def lines_with_errors(every_name, *command: str) -> set[tuple[str, int]]:
    done = subprocess.run(
        [*command, *map(str, [*PROGRAMS, every_name])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"(typed_\w+\.py):(\d+)[:\d]*.* error\b", done.stdout)
    return {(name, int(number)) for name, number in found}


@pytest.mark.slow
def test_mypy(every_name):
    pytest.importorskip("mypy", reason="mypy is not installed")
    assert lines_with_errors(every_name, sys.executable, "-m", "mypy") == WRONG


@pytest.mark.slow
def test_pyright(every_name):
    command = Path(sys.executable).with_name("pyright")
    if not command.exists():
        pytest.skip("pyright is not installed")
    assert lines_with_errors(every_name, str(command)) == WRONG


def test_all_that_is_found_on_first_use_is_declared():
    """Else type checkers would report it as missing."""
    tree = ast.parse(Path(tp.__file__).with_name("_declared.py").read_text("utf-8"))
    declared = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.asname for alias in node.names]
            if isinstance(node, ast.ImportFrom)
            else [node.target.id]
            if isinstance(node, ast.AnnAssign)
            else [target.id for target in node.targets]
            if isinstance(node, ast.Assign)
            else []
        )
    }
    in_place = {
        name
        for name in dir(tp.Tensor)
        if name.endswith("_") and name[0] != "_" and op_registry.has_op(name.rstrip("_"))
    }
    found = {*_namespaces.LAZY, *_namespaces.LAZY_FUNCTIONS, *_namespaces.tensor_types, *in_place}
    assert {name for name in found - declared if name not in vars(tp)} == set()


if __name__ == "__main__":
    print(*public_names(), sep="\n")
