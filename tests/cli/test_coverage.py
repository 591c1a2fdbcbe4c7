"""The coverage matrix, the command that prints it, and the pages that are made from it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplug as tp
from tensorplug.cli import main
from tensorplug.core.coverage import backends, coverage
from tensorplug.core.operators import all_ops
from tensorplug.plugin import Kernel, dtype_named, hookimpl
from tensorplug.testing import pages

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["coverage.md", "primitives.md"])
def test_the_committed_pages_are_those_that_the_code_gives(name):
    message = f"docs/{name} is not what the code says; run `make docs`"
    assert (DOCS / name).read_text("utf-8") == pages.all_pages()[name], message


def test_primitives_are_few():
    pages.all_pages()  # loads every plugin
    primitives = [op.name for op in pages.own_ops() if op.sort == "primitive"]
    assert len(primitives) < 120, f"{len(primitives)} primitives: write new ops in others"


def test_cpu_numpy_misses_nothing():
    missing = {
        (entry.op, entry.dtype)
        for entry in coverage([("cpu_numpy", "cpu")], pages.dtypes_taken())
        if entry.way == "missing"
    }
    assert not missing


def entries_of(op, plugin="cpu_numpy"):
    found = coverage([(plugin, "cpu")], pages.dtypes_taken())
    return {entry.dtype: entry.way for entry in found if entry.op == op}


def test_ways():
    assert set(entries_of("exp").values()) == {"kernel"}
    assert entries_of("exp2")["float32"] == "kernel"
    assert entries_of("exp2")["int64"] == "composite"
    assert set(entries_of("hypot").values()) == {"composite"}
    assert "float32" not in entries_of("bitwise_and")


def test_another_backend():
    class Partial:
        name = "partial"

        @hookimpl
        def tensorplug_kernels(self):
            return [Kernel("exp", "cpu", lambda x: x, frozenset({dtype_named("float32")}), 9)]

    tp.plugins.register(Partial())
    try:
        assert ("partial", "cpu") in backends()
        ways = entries_of("exp", "partial")
        assert ways["float32"] == "kernel"
        assert ways["float64"] == "missing"
        assert "partial" not in pages.coverage_page()  # it is no part of the distribution
    finally:
        tp.plugins.unregister("partial")


def test_table(capsys):
    assert main(["coverage", "--backend", "cpu_numpy", "--op", "exp*", "--ops"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[2:-1]}
    assert rows["expm1"] == ["1", "15", "0", "0"]
    kernels, composite = map(int, rows["exp2"][1:3])
    assert kernels == 4
    assert composite > 8
    assert int(rows["total"][0]) == len({op.name for op in all_ops() if op.name.startswith("exp")})


def test_json(capsys):
    assert main(["coverage", "--backend", "cpu_numpy", "--op", "exp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {entry["op"] for entry in found} == {"exp"}
    assert found[0].keys() == {"op", "family", "sort", "dtype", "backend", "device", "way"}
    assert found[0]["backend"] == "cpu_numpy"


def test_unknown_backend(capsys):
    assert main(["coverage", "--backend", "nosuch"]) == 1
    assert "cpu_numpy" in capsys.readouterr().err


def test_unknown_op(capsys):
    assert main(["coverage", "--op", "mull"]) == 1
    assert "no op here matches 'mull'; did you mean mul" in capsys.readouterr().err


def test_as_a_module():
    command = [sys.executable, "-m", "tensorplug", "coverage", "--op", "exp"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search("^cpu_numpy( and .*)? on cpu", done.stdout, re.MULTILINE)
