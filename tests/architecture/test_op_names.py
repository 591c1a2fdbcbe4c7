"""No op is known by its name, outside of its family and of what registers something for it."""

import ast
from pathlib import Path

import pytest

from tensorplug.core import plugins
from tensorplug.core.dispatch import op_registry

ROOT = Path(__file__).parents[2]

#: Where ops are declared, and where plugins register kernels, formulas and samples for them.
FAMILIES = (
    "core/ops",
    "autograd/formulas",
    "plugin/array_kernels",
    "plugin/standard",
    "testing/samples",
)

REFERENCES = "references to ops, by handle()"
WORDS = "words of another meaning"

#: By file: the names that may stand in strings (None for any), and why.
ALLOWED: dict[str, tuple[set[str] | None, str]] = {
    "autograd/engine/arithmetic.py": ({"add", "fill_new", "sum", "view"}, REFERENCES),
    "autograd/engine/backward_ranges.py": ({"range"}, WORDS),
    "autograd/vmap/calls.py": ({"copy"}, REFERENCES),
    "autograd/vmap/primitive_rules.py": ({"arange", "clone", "stack"}, REFERENCES),
    "autograd/vmap/batched_tensor.py": ({"basic_index"}, REFERENCES),
    "autograd/vmap/composite_rules.py": ({"clone", "stack"}, REFERENCES),
    "autograd/engine/accumulation.py": ({"add", "clone"}, REFERENCES),
    "autograd/forward/forward_mode.py": ({"as_strided", "copy", "view"}, REFERENCES),
    "autograd/graph/hooks.py": ({"all", "any"}, WORDS),
    "autograd/graph/recorder.py": ({"clone", "copy"}, REFERENCES),
    "autograd/grad_mode.py": ({"mode"}, WORDS),
    "testing/collectives.py": ({"complex", "contiguous", "empty"}, "layouts, and dtypes"),
    "profiler/profile.py": ({"range"}, WORDS),
    "profiler/events.py": ({"cat", "range"}, WORDS),
    "autograd/forward/tangents.py": ({"linear", "t"}, WORDS),
    "autograd/graph/views.py": ({"as_strided", "clone"}, REFERENCES),
    "core/tensor/creation.py": ({"as_strided"}, REFERENCES),
    "core/device/device.py": ({"index"}, WORDS),
    "core/device/dtypes.py": ({"max", "min"}, WORDS),
    "core/dispatch/failed_calls.py": ({"complex"}, WORDS),
    "core/dispatch/overrides.py": (None, "Python's operators, by the op of each"),
    "core/tensor/conversion.py": (
        {"cast", "clone", "clone_strided", "copy", "to_device"},
        REFERENCES,
    ),
    "core/tensor/array_operands.py": ({"matmul", "pow"}, "Python's operators, by the op of each"),
    "core/tensor/mirrors.py": ({"conj_physical", "copy", "view"}, REFERENCES),
    "core/tensor/methods.py": ({"cast"}, REFERENCES),
    "core/tensor/basic_views.py": ({"basic_index"}, REFERENCES),
    "core/tensor/index_keys.py": ({"basic_index", "index"}, REFERENCES),
    "core/tensor/indexing.py": (
        None,
        "subscripts of tensors: references to the ops that they come to",
    ),
    "core/device/meta.py": (None, "how the meta device shows each view"),
    "core/tensor/printing.py": ({"full", "threshold"}, WORDS),
    "core/dispatch/profiling.py": ({"copy", "range"}, WORDS),
    "core/dispatch/layers.py": ({"stack"}, WORDS),
    "autograd/transforms/levels.py": ({"stack"}, WORDS),
    "core/tensor/python_operators.py": (None, "Python's operators, by the op of each"),
    "core/dispatch/resolution.py": ({"cast"}, REFERENCES),
    "core/device/runtime.py": ({"complex", "empty"}, WORDS),
    "core/tensor/tensor.py": (None, REFERENCES),
    "core/tensor/operators.py": (None, "Python's operators, by the op of each"),
    "core/dispatch/writes.py": ({"cast", "clone", "copy"}, REFERENCES),
    "plugin/__init__.py": ({"linear"}, WORDS),
    "testing/cases.py": ({"contiguous"}, WORDS),
    "testing/comparison.py": ({"equal"}, WORDS),
    "testing/conformance/plugin.py": (
        {"gradient", "philox_bits"},
        "what a device needs to be tested",
    ),
    "testing/device_cases.py": (None, "the cases of a device, by what they call"),
    "testing/transform_cases.py": (None, "which ops have which guards and exceptions, by name"),
    "testing/families.py": (None, "the names of the families"),
    "testing/pages.py": ({"all", "complex", "view"}, WORDS),
}


def strings_of(path: Path) -> set[str]:
    """Return the strings of a file, without docstrings and ``__slots__``."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # docstrings
            skipped.add(node.value)
        slots = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__slots__" for target in node.targets
        )
        if slots or isinstance(node, ast.arg | ast.AnnAssign):
            skipped.update(ast.walk(node.value if slots else node.annotation or node))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped
    }


@pytest.fixture(scope="module")
def names():
    plugins.load_device("extension")
    return {op.name for op in op_registry.all_ops()}


def files():
    for layer in ("core", "autograd", "plugin", "testing"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(FAMILIES):
                yield name


def test_no_op_is_known_by_its_name(names):
    assert {"copy", "cast", "philox_bits", "convolution", "squeeze"} <= names
    found = {}
    for name in files():
        allowed, _ = ALLOWED.get(name, (set(), ""))
        if allowed is not None and (strange := (strings_of(ROOT / name) & names) - allowed):
            found[name] = sorted(strange)
    assert not found, "give the op an attribute instead, see Op"


def test_what_is_allowed_is_needed(names):
    for name, (allowed, reason) in ALLOWED.items():
        assert reason
        used = strings_of(ROOT / name) & names
        assert used, name
        assert allowed is None or allowed <= used, (name, allowed - used)


def test_a_name_is_found(tmp_path, names):
    path = tmp_path / "offender.py"
    path.write_text('"""squeeze"""\n\n\ndef f(op):\n    return op.name == "squeeze"\n', "utf-8")
    assert strings_of(path) & names == {"squeeze"}
