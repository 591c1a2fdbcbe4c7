"""Every block of code in the guide runs, parses, or is what a template writes."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from tensorplug.cli import main, scaffold
from tensorplug.core.device.runtime import DeviceRuntime
from tensorplug.core.plugins import hookspecs
from tensorplug.plugin import CAPABILITIES, GROUP, __all__ as public

from .walk import ROOT, blocks

FOLDER = ROOT / "docs" / "backends"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "first_backend.md")


def of(page, language):
    return [text for found, _, text in blocks(page) if found == language]


def test_there_are_pages():
    assert len(PAGES) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python(page):
    """The blocks of a page are one program; a traceback tells the page's lines."""
    text = page.read_text("utf-8")
    program = [""] * text.count("\n")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        first = text[: match.start(1)].count("\n")
        lines = match[1].splitlines()
        program[first : first + len(lines)] = lines
    source = "\n".join(program)
    run = f"exec(compile({source!r}, {str(page)!r}, 'exec'), {{'__name__': 'page'}})"
    command = [sys.executable, "-W", "error", "-c", run]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_toml(page):
    for text in of(page, "toml"):
        points = tomllib.loads(text).get("project", {}).get("entry-points", {})
        assert not points or GROUP in points


def test_workflow():
    (text,) = of(FOLDER / "publishing.md", "yaml")
    assert text == dict(scaffold.package("backend", "abacus"))[".github/workflows/ci.yml"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_of_commands_exist(page, capsys):
    suite = (ROOT / "testing" / "conformance" / "plugin.py").read_text("utf-8")
    for line in [line for text in of(page, "console") for line in text.splitlines()]:
        program, *rest = shlex.split(line.removeprefix("$ "))
        options = {word for word in rest if word.startswith("--")} - {"--pyargs"}
        if program.endswith("tensorplug"):
            with pytest.raises(SystemExit):
                main([rest[0], "--help"])
            told = capsys.readouterr().out
            assert all(option in told for option in options), line
        elif program.endswith("pytest"):
            assert all(f'"{option}"' in suite for option in options), line


def test_languages_are_known():
    found = {language for page in PAGES for language, _, _ in blocks(page)}
    assert found <= {"python", "toml", "yaml", "console"}, found


def test_every_hook_and_capability_is_described():
    hooks = {name for name in vars(hookspecs) if name.startswith("tensorplug_")}
    told = (FOLDER / "hooks.md").read_text("utf-8")
    assert not {name for name in hooks if f"`{name}`" not in told}
    told = (FOLDER / "device.md").read_text("utf-8")
    assert not {name for name in CAPABILITIES if f"`{name}`" not in told}
    described = {name for name in DeviceRuntime.required if name not in told}
    assert not described


def test_links_lead_somewhere():
    for page in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_imported_names_are_public():
    for page in FOLDER.glob("*.md"):
        for text in of(page, "python"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and node.module == "tensorplug.plugin":
                    assert {alias.name for alias in node.names} <= set(public), page.name
