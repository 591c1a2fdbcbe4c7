"""The coverage matrix, the command that prints it, and the pages that are made from it."""

import json
import re
import subprocess
import sys

import pytest

import tensorplug as tp
from tensorplug.cli import main
from tensorplug.core.dispatch.coverage import backends, coverage
from tensorplug.core.dispatch.op_registry import all_ops
from tensorplug.plugin import Kernel, dtype_named, hookimpl
from tensorplug.testing import pages


def rows_of(page):
    """Return the rows of a page's tables by the op that they begin with."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    assert len(dict(rows)) == len(rows), "an op stands twice"
    return dict(rows)


def test_pages_are_written(tmp_path, capsys):
    assert main(["coverage", "--write", str(tmp_path)]) == 0
    written = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert written == pages.all_pages()
    assert written.keys() == {"coverage.md", "primitives.md"}
    assert f"wrote {tmp_path / 'coverage.md'}" in capsys.readouterr().out


def test_coverage_page():
    page = pages.all_pages()["coverage.md"]
    assert page.count("\n## ") == 1
    rows = rows_of(page)
    assert rows["exp"] == "primitive | all | "
    assert rows["exp2"].startswith("composite | float | bool, unsigned")
    ops = {entry.op for entry in coverage([("cpu_numpy", "cpu")], pages.dtypes_taken())}
    assert rows.keys() == ops & {op.name for op in pages.own_ops()}


def test_primitives_page():
    page = pages.all_pages()["primitives.md"]
    rows = rows_of(page)
    primitives = {op.name for op in pages.own_ops() if op.kind == "primitive"}
    assert primitives <= rows.keys()
    assert f"## Primitives ({len(primitives)})" in page
    assert rows["matmul"].startswith("`input, other` | ")
    others = {op.name for op in pages.own_ops()} - rows.keys()
    assert all(f"`{name}`" in page for name in others)


def test_primitives_are_few():
    pages.all_pages()  # loads every plugin
    primitives = [op.name for op in pages.own_ops() if op.kind == "primitive"]
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
    assert found[0].keys() == {"op", "family", "kind", "dtype", "backend", "device", "way"}
    assert found[0]["backend"] == "cpu_numpy"


def test_unknown_backend(capsys):
    assert main(["coverage", "--backend", "nosuch"]) == 1
    assert "cpu_numpy" in capsys.readouterr().err


def test_unknown_op(capsys):
    assert main(["coverage", "--op", "mull"]) == 1
    assert "no op here matches 'mull'; did you mean mul" in capsys.readouterr().err


@pytest.mark.slow
def test_as_a_module():
    command = [sys.executable, "-m", "tensorplug", "coverage", "--op", "exp"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search("^cpu_numpy( and .*)? on cpu", done.stdout, re.MULTILINE)
