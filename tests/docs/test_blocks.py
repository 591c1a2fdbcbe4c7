"""The blocks of all pages beside the guide for plugins, which has tests of its own.

Python runs, page by page; of commands it is looked up whether there are such.
"""

import re
import tomllib

import pytest

import tensorplug as tp
from tensorplug.cli import main

from .walk import ROOT, blocks

GUIDE, DOCTESTS = ROOT / "docs" / "backends", {"autograd.md"}
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (
        *ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("docs/**/*.md"),
    )
    if GUIDE not in path.parents
    and "generated" not in path.parts
    and path.name not in DOCTESTS | {"coverage.md", "primitives.md"}
}  # fmt: skip

#: What stands for the program of which a page shows a piece.
BEFORE = {
    "README.md": "import types, numpy; jax = types.SimpleNamespace(numpy=numpy)\n"
    "from tensorplug.plugin import array_api_backend, derivative",
    "docs/architecture.md": "import tensorplug as tp",
    "docs/conformance.md": "from tensorplug.plugin import DeviceRuntime",
    "docs/data.md": "import tensorplug as tp; model, train = tp.nn.Linear(2, 3), None\n"
    "dataset = tp.data.TensorDataset(tp.ones(8, 2))",
    "docs/onnx.md": """import onnx.parser, tensorplug as tp
x = tp.ones(1, 2)
text = '<ir_version: 8, opset_import: ["" : 18]> g (float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }'
onnx.save(onnx.parser.parse_model(text), "model.onnx")""",
    "docs/files.md": "import tensorplug as tp; model = tp.nn.Linear(2, 3)",
}


def programs(page):
    """The Python blocks of a page; those of one page share their names."""
    return [text for language, _, text in blocks(page) if language == "python"]


WITH_PYTHON = sorted(name for name, page in PAGES.items() if programs(page))


def test_there_are_pages():
    assert len(PAGES) > 35
    assert len(WITH_PYTHON) >= 9, WITH_PYTHON


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python(name, tmp_path, monkeypatch, capsys):
    if name == "docs/onnx.md":
        pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tp.multiprocessing, "spawn", lambda function, args, nprocs: None)
    state = tp.get_rng_state()
    names = {"__name__": "page"}
    exec(BEFORE.get(name, ""), names)
    for text in programs(PAGES[name]):
        exec(compile(text, name, "exec"), names)
    tp.set_rng_state(state)


def test_languages_are_known():
    found = {language for page in PAGES.values() for language, _, _ in blocks(page)}
    assert found <= {"python", "toml", "sh", "console", None}, found


def commands():
    """The lines of blocks of commands, with their page."""
    for name, page in PAGES.items():
        for language, _, text in blocks(page):
            if language in (None, "sh", "console"):
                for line in text.splitlines():
                    yield name, line.removeprefix("$ ").partition("#")[0].strip()


def test_every_page_is_in_the_navigation():
    listed = {ROOT / "docs" / "index.md"}
    for page in (ROOT / "docs").rglob("*.md"):
        for entries in re.findall(
            r"^```{toctree}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in entries.splitlines():
                target = re.sub(r".*<(.*)>", r"\1", line).strip()
                if target and not target.startswith(":"):
                    listed.update(
                        page.parent.resolve().glob(f"{target}.md")
                        if "*" in target
                        else [(page.parent / f"{target}.md").resolve()]
                    )
    pages = {
        path.resolve() for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts
    }
    assert not pages - listed


def test_make_has_the_targets():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name, line in commands():
        if line.startswith("make "):
            assert line.split()[1] in targets, f"{name}: {line}"


def test_subcommands_exist(capsys):
    seen = {line.split()[1] for _, line in commands() if line.startswith("tensorplug ")}
    assert "doctor" in seen
    for command in sorted(seen):
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
    capsys.readouterr()


def test_installed_folders_and_extras_exist():
    for name, line in commands():
        if not line.startswith("pip install"):
            continue
        for word in line.replace("'", "").split()[2:]:
            folder, _, extra = word.partition("[")
            if folder.startswith("."):
                project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))
                extras = project["project"].get("optional-dependencies", {})
                assert not extra or extra.rstrip("]") in extras, f"{name}: {line}"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_links_lead_somewhere(name):
    page = PAGES[name]
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        generated = {"coverage.md", "primitives.md"}
        if "generated/" not in target and target.rpartition("/")[2] not in generated:
            assert (page.parent / target).exists(), target


def test_figures_of_the_readme_are_measured():
    """Every ratio stands in docs/performance.md, too."""
    readme = (ROOT / "README.md").read_text("utf-8")
    measured = (ROOT / "docs" / "performance.md").read_text("utf-8")
    table = readme.partition("## How fast")[2].partition("## How a plugin")[0]
    ratios = re.findall(r"\| (\d\.\d\d(?: to \d\.\d\d)?) ", table)
    assert len(ratios) == 12
    assert not [ratio for ratio in ratios if ratio not in measured]
    assert re.search(r"\d{4}-\d\d-\d\d", table)[0] in measured
