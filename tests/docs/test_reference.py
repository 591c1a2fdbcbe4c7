"""Every public name is documented, on one page of the API reference."""

import importlib
import inspect
import json
import re
import subprocess
import sys
import types

import pytest

from .walk import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import public_names

PAGES = [page for pages in public_names.pages().values() for page in pages]
NAMES = [name for page in PAGES for name in page.names()]


def test_there_are_as_many_as_there_were():
    assert len(NAMES) > 2100
    assert len(PAGES) > 55
    assert len({page.slug for page in PAGES}) == len(PAGES)


def test_every_name_is_documented():
    assert not [name.path for name in NAMES if not name.doc]


def test_every_name_stands_once():
    paths = [name.path for name in NAMES]
    assert len(paths) == len(set(paths))


def test_summaries_are_sentences():
    """The first paragraph is one of prose, so that tables can show it."""
    odd = [name.path for name in NAMES if ">>>" in name.summary or "----" in name.summary]
    assert not odd


def test_aliases_lead_to_entries():
    entries = {name.path for name in NAMES if name.alias_of is None}
    assert not {name.alias_of for name in NAMES if name.alias_of} - entries - {"Tensor"}


# Other tests in this process register device types, which are members then.
FRESH = """
import json, types
import tensorplug as tp
public = [name for name in dir(tp) if not name.startswith("_")]
modules = [name for name in public if isinstance(getattr(tp, name), types.ModuleType)]
print(json.dumps([public, modules, [name for name in dir(tp.Tensor) if not name.startswith("_")]]))
"""


@pytest.fixture(scope="module")
def members():
    """The public names of the package, which of them are modules, and those of Tensor."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    return [set(names) for names in json.loads(done.stdout)]


def test_every_name_of_the_top_level_has_a_page(members):
    found = {name.path for name in NAMES}
    public, modules, _ = members
    known = {space.partition(".")[0] for space in (*public_names.NAMESPACES, "nn")}
    assert not public - modules - found - {"Tensor"}
    new = modules - known - {"cli", "core", "cpu", "mps", "xpu", "meta", "version"}
    assert not new, f"give {new} titles in docs/_ext/public_names.py"


def test_every_member_of_tensor_has_a_page(members):
    found = {name.name for name in NAMES if name.namespace == "Tensor"}
    assert not members[2] - found


def test_every_listed_name_of_every_module_has_a_page():
    """What a public module lists in ``__all__`` is documented there or where it comes from."""
    found = {id(name.value) for name in NAMES}
    missing = []
    for space in public_names.NAMESPACES:
        if space in ("cuda", "return_types", "plugins"):
            continue
        module = importlib.import_module(f"tensorplug.{space}")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                missing += [f"{space}.{name}"] if id(value) not in found else []
    assert not missing


def test_members_of_classes_are_documented():
    missing, count = [], 0
    for class_ in public_names.public_classes():
        for name, entry in vars(class_).items():
            function = entry.__func__ if isinstance(entry, classmethod | staticmethod) else entry
            if isinstance(function, types.FunctionType) and not name.startswith("_"):
                count += 1
                if not inspect.getdoc(getattr(class_, name)):
                    missing.append(f"{class_.__qualname__}.{name}")
    assert count > 700
    assert not missing


def test_inventories_hold_entries():
    """A line of docs/_inventories is: name, domain:role, priority, place, title."""
    for path in (ROOT / "docs" / "_inventories").glob("*.txt"):
        for line in path.read_text("utf-8").splitlines():
            assert re.fullmatch(r"[\w.]+ py:\w+ [01] \S+\.html\S* -", line), line


def test_the_picture_is_what_its_script_draws(tmp_path):
    images = ROOT / "docs" / "images"
    copy = tmp_path / "draw_dispatch.py"
    copy.write_text((images / "draw_dispatch.py").read_text("utf-8"), "utf-8")
    subprocess.run([sys.executable, str(copy)], check=True)
    drawn = (tmp_path / "dispatch.svg").read_text("utf-8")
    assert drawn == (images / "dispatch.svg").read_text("utf-8")
