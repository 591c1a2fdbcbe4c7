"""The walk through dispatcher and autograd runs, imports nothing of tensorplug, and keeps its size."""

import ast
import io
import subprocess
import sys
import tokenize

import tensorplug.core.dispatch.dispatcher
import tensorplug.core.dispatch.kernel_registry
import tensorplug.core.dispatch.keys
import tensorplug.core.dispatch.op_registry
import tensorplug.core.dispatch.resolution

from .walk import ROOT

PAGE = ROOT / "docs" / "build_your_own.py"
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def test_it_runs():
    command = [sys.executable, "-W", "error", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all checks passed\n"), done.stderr


def test_it_stands_alone():
    for node in ast.walk(ast.parse(PAGE.read_text("utf-8"))):
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert set(modules) <= {
            "collections.abc", "contextlib", "dataclasses", "itertools", "numpy", "typing",
        }  # fmt: skip


def test_it_has_the_projects_names():
    text = PAGE.read_text("utf-8")
    for module, names in {
        tensorplug.core.dispatch.op_registry: ("Op", "primitive", "composite"),
        tensorplug.core.dispatch.keys: ("DispatchKey", "dispatch_key"),
        tensorplug.core.dispatch.kernel_registry: ("Kernel",),
        tensorplug.core.dispatch.resolution: ("make_stub", "choose"),
        tensorplug.core.dispatch.dispatcher: ("run",),
        tensorplug.plugin: ("Layer", "derivative"),
    }.items():
        for name in names:
            assert hasattr(module, name), f"{module.__name__} has no {name}"
            assert any(f"{start}{name}" in text for start in ("def ", "class ", "\n")), name


def test_it_stays_short():
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(PAGE.read_text("utf-8")).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    assert len(lines) <= 310, len(lines)
