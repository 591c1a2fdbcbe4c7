"""What a .pxd makes a variable of C is no attribute of the compiled module: Python does not find it there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILED = ("core", "autograd", "graph")
READERS = (*COMPILED, "amp", "data", "nn", "optim", "plugin", "sparse", "src", "testing", "tests")

VARIABLE = re.compile(r"^cdef (?!class|enum|extern|inline)(?:\w+ )?((?:\w+, )*\w+)$", re.MULTILINE)


def test_no_module_reads_a_variable_of_c_from_another():
    sources = {
        path: re.sub(r'""".*?"""', "", path.read_text("utf-8"), flags=re.DOTALL)
        for folder in READERS
        for path in (ROOT / folder).rglob("*.py")
    }
    found = []
    variables = 0
    for types in (path for folder in COMPILED for path in (ROOT / folder).rglob("*.pxd")):
        names = [
            n for given in VARIABLE.findall(types.read_text("utf-8")) for n in given.split(", ")
        ]
        variables += len(names)
        attribute = re.compile(rf"(?<!\.)\b{types.stem}\.({'|'.join(names)})\b")
        found += [
            f"{path.relative_to(ROOT)}: {match[0]}"
            for path, text in sources.items()
            if names
            and f"{types.stem}." in text
            and path != types.with_suffix(".py")
            # Of two modules of one name a reader means the one beside it.
            and (path.parent == types.parent or not path.with_name(f"{types.stem}.py").exists())
            for match in attribute.finditer(text)
        ]
    assert variables > 50
    assert not found, "leave it out of the .pxd, or cimport it"
