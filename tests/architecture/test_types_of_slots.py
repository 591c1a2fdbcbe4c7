"""The .pxd beside a compiled module names every slot of its classes: the sources alone would not miss one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPES = sorted(
    path for folder in ("core", "autograd", "graph") for path in (ROOT / folder).rglob("*.pxd")
)


def slots_in_source(path: Path) -> dict[str, set[str]]:
    found = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if (
                    isinstance(statement, ast.Assign)
                    and ast.unparse(statement.targets[0]) == "__slots__"
                ):
                    found[node.name] = set(ast.literal_eval(statement.value))
    return found


def attributes_in_types(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        if match := re.match(r"cdef class (\w+)", line):
            name = match[1]
            found[name] = set()
        elif line and not line[0].isspace():
            name = ""
        elif name and (match := re.match(r"    cdef (?:public )?\w+ ([\w, ]+)$", line)):
            found[name] |= {part.strip() for part in match[1].split(",")}
    return found


@pytest.mark.parametrize("types", TYPES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_the_types_name_every_slot(types):
    slots = slots_in_source(types.with_suffix(".py"))
    for name, attributes in attributes_in_types(types).items():
        if name in slots:
            assert attributes == slots[name], name


def test_there_are_types():
    assert TYPES
