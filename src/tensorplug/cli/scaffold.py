"""``tensorplug new-backend`` and ``new-extension``: a complete package to begin with."""

from __future__ import annotations

import argparse
import keyword
import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from string import Template

import tensorplug
from tensorplug._devices import is_device_type
from tensorplug.core.plugins import GROUP, discovery, entry_points

from .output import complain

# Device types that a new backend cannot have, and a name that entry points give another meaning.
_TAKEN = ("cpu", "meta", *entry_points.NO_DEVICES)


class _Text(Template):
    """A template that marks its places with ``@@``, which Python, TOML and YAML leave free."""

    delimiter = "@@"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both commands to the parser."""
    for kind, what, then in (
        ("backend", "a device type of its own", "pytest runs the conformance suite on it"),
        ("extension", "ops of its own for every device", "pytest runs the suite on those ops"),
    ):
        command = commands.add_parser(
            f"new-{kind}",
            help=f"write a package that adds {what}",
            description=f"Write a complete package that adds {what}: pyproject with the entry "
            f"point, sources, test, continuous integration, README. It installs and passes as it "
            f"is; {then}.",
        )
        command.add_argument("name", metavar="NAME", help="a Python name in lower case")
        command.add_argument("--into", type=Path, default=Path(), metavar="FOLDER",
                             help="where the package's folder is made; here unless given")  # fmt: skip
        command.set_defaults(run=_new, kind=kind)


def _new(chosen: argparse.Namespace) -> int:
    problem = _problem(chosen.kind, chosen.name)
    if problem:
        return complain(f"new-{chosen.kind}: {problem}")
    folder = chosen.into / f"tensorplug-{chosen.name}"
    if folder.exists():
        return complain(f"new-{chosen.kind}: {folder} is there already; it is left as it is")
    lines = 0
    for path, text in package(chosen.kind, chosen.name):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        count = text.count("\n")
        lines += count
        print(f"  {count:4} lines  {target}")
    print(f"wrote {lines} lines; next:\n\n  cd {folder}\n  pip install -e '.[test]'\n  pytest")
    return 0


def _problem(kind: str, name: str) -> str:
    """Return why a package of this kind cannot be called `name`; nothing if it can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        return f"expected a Python name in lower case, such as 'abacus', got {name!r}"
    if name in _TAKEN:
        return f"{name!r} is taken; choose another name"
    index = name if kind == "backend" else f"{entry_points.EXTENSION}.{name}"
    for found in entry_points.installed():
        if f"{found.name}.".startswith(f"{index}."):
            return f"{name!r} is taken by {found.package}; choose another name"
    hint = discovery.install_hint(name)
    if kind == "backend" and hint:
        return f"{name!r} is a device already ({hint}); choose another name"
    if kind == "backend" and hasattr(tensorplug, name) and not is_device_type(name):
        return f"{name!r} would hide tensorplug.{name}; choose another name"
    return ""


def package(kind: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file of a new package.

    Parameters
    ----------
    kind : {"backend", "extension"}
        Which template.
    name : str
        The device type, or the prefix of the ops.

    Examples
    --------
    >>> [path for path, text in package("extension", "abacus") if path.endswith(".toml")]
    ['pyproject.toml']
    """
    values = {
        "name": name,
        "title": "".join(part.title() for part in name.split("_")),
        "group": GROUP,
        "version": tensorplug.__version__.partition(".dev")[0],
    }
    root = resources.files("tensorplug.cli") / "templates" / kind
    for path, file in sorted(_files(root, PurePosixPath())):
        text = _Text(file.read_text("utf-8")).substitute(values)
        index = str(path).replace("src/package", f"src/tensorplug_{name}")
        yield index.removesuffix(".template"), text


def _files(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, path / entry.name)
        elif entry.name.endswith(".template"):
            yield path / entry.name, entry
