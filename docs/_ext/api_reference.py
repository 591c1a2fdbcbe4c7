"""Writes the pages of the API reference before the build, from `public_names`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import public_names
from docutils import nodes
from public_names import Name, Page
from sphinx.addnodes import pending_xref

import tensorplug as tp

FOLDER = Path("generated", "reference")
#: A shape with "any number of dimensions" in it, (N, C, *), which would begin an emphasis.
SHAPE = re.compile(r"(?<![`\w*])\([^()`]*\*[^()`]*\)(?![`\w])")


def write(app: Any) -> None:
    """Write every page and the index; pages that did not change keep their time."""
    folder = Path(app.srcdir) / FOLDER
    sections = public_names.pages()
    for page in (page for found in sections.values() for page in found):
        rename_classes(page)
    texts = {f"{p.slug}.rst": "\n".join(render(p)) for ps in sections.values() for p in ps}
    texts["index.rst"] = "\n".join(index(sections))
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.iterdir()} - set(texts):
        (folder / stale).unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def rename_classes(page: Page) -> None:
    """Give ``tp.dtype`` and its like their public names, for autodoc takes them for aliases else."""
    for n in page.names():
        if n.kind == "class" and n.alias_of is None and n.value.__name__ != n.name:
            n.value.__name__ = n.value.__qualname__ = n.name


def index(sections: dict[str, list[Page]]) -> Iterator[str]:
    """Write the page that leads to all others."""
    count = sum(len(list(p.names())) for ps in sections.values() for p in ps)
    yield from (
        "API reference",
        "=============",
        "",
        ".. py:module:: tensorplug",
        "   :no-index-entry:",
        "",
    )
    yield f"All {count:,} public names, by the namespace in which programs find them. ``tp`` is"
    yield "``import tensorplug as tp``. Each entry leads to its source."
    for section, found in sections.items():
        yield from ("", section, "-" * len(section), "")
        yield from (".. list-table::", "   :widths: 40 60", "   :class: names", "")
        for p in found:
            name = f"``tp.{p.namespace}``" if section == "Namespaces" else ""
            yield f"   * - :doc:`{heading(p)} <{p.slug}>`"
            yield f"     - {name or ', '.join(p.groups)}"
        yield from ("", ".. toctree::", "   :hidden:", f"   :caption: {section}", "")
        yield from (f"   {heading(p)} <{p.slug}>" for p in found)


def heading(page: Page) -> str:
    """Return what a page is called in the navigation."""
    return f"tp.{page.namespace}" if page.namespace not in ("", "nn", "Tensor") else page.title


def render(page: Page) -> Iterator[str]:
    """Write a page: for each group a table of its names, then the entries."""
    space = ".".join(filter(None, ("tp", page.namespace)))
    title = f"{space}: {page.title[0].lower()}{page.title[1:]}"
    yield from (title, "=" * len(title), "")
    module = (
        f"tensorplug.{page.namespace}" if page.namespace not in ("", "Tensor") else "tensorplug"
    )
    if page.namespace not in ("", "nn", "Tensor"):
        doc = inspect.getdoc(public_names.find(page.namespace)) or ""
        yield from (f".. py:module:: {module}", "", doc.partition("\n\n")[0], "")
    else:
        yield from (f".. py:currentmodule:: {module}", "")
    if page.title == "The class":
        yield from (".. autoclass:: tensorplug.Tensor", "")
    for title, names in page.groups.items():
        if len(page.groups) > 1:
            text = title.capitalize()
            yield from (text, "-" * len(text), "")
        yield from table(names)
        for n in names:
            yield from entry(n)


def table(names: list[Name]) -> Iterator[str]:
    """Write a line for each name, with its link."""
    yield from (".. list-table::", "   :widths: 30 70", "   :class: names", "")
    for n in names:
        text = f"As :any:`tensorplug.{n.alias_of}`." if n.alias_of else quote_shapes(n.summary)
        yield f"   * - :any:`{n.name} <tensorplug.{n.path}>`"
        yield f"     - {text}"
    yield ""


def entry(n: Name) -> Iterator[str]:
    """Write the entry of a name."""
    path = f"tensorplug.{n.path}"
    local = f"Tensor.{n.name}" if n.namespace == "Tensor" else n.name  # in the page's module
    method = "method" if n.namespace == "Tensor" else "function"
    if n.alias_of is not None:
        kind = method if n.kind == "function" else "data"
        signature = plain_signature(n.value, method=method == "method") if kind != "data" else ""
        yield from (
            f".. py:{kind}:: {local}{signature}",
            "",
            f"   See :any:`tensorplug.{n.alias_of}`.",
            "",
        )
    elif n.kind == "class":
        yield from (f".. autoclass:: {path}", *members(n.value), "")
    elif n.kind == "property":
        yield from (f".. autoattribute:: {path}", "")
    elif n.kind == "function":
        yield from (f".. auto{method}:: {path}", "")
    else:
        yield from (f".. py:data:: {local}", "", *(f"   {line}" for line in n.doc.splitlines()), "")


def members(value: type) -> list[str]:
    """Write which members of a class have entries."""
    names = public_names.members(value)
    return [f"   :members: {', '.join(names)}"] if names else []


def plain_signature(function: Any, *, method: bool) -> str:
    """Return a signature without types, of a method without the tensor."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare[method:], return_annotation=inspect.Signature.empty))


def shown_signature(_app: Any, _what: str, name: str, obj: Any, *_rest: Any) -> Any:
    """Show for ``tp.Tensor.add_`` the signature of the op that it runs in place."""
    op = name.rpartition(".")[2].removesuffix("_")
    if getattr(obj, "__module__", "") == "tensorplug.core.dispatch.calls" and name.endswith("_"):
        function = (
            getattr(tp, op, None) or getattr(tp.Tensor, op, None) or getattr(tp.special, op, None)
        )
        if function is not None:
            return plain_signature(function, method=True), None
    return None


def quote_shapes(line: str) -> str:
    """Set the shapes in a line as code, where the line is no code itself."""
    parts = line.split("``")
    if not line.lstrip().startswith((">>>", "...")):
        parts[::2] = [SHAPE.sub(r"``\g<0>``", part) for part in parts[::2]]
    return "``".join(parts)


def shapes_as_code(
    _app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    """Set the shapes of a docstring as code."""
    lines[:] = map(quote_shapes, lines)


#: In docstrings these mean Python's, not the dtypes of the same names.
BUILTINS = {"bool", "complex", "float", "int", "type", "object", "inf", "None"}


def name_builtins(_app: Any, doctree: nodes.document) -> None:
    """Send the types of parameters that are Python's to Python's pages."""
    for reference in doctree.findall(pending_xref):
        if reference.get("refspecific") and reference["reftarget"] in BUILTINS:
            reference["reftarget"] = f"python:{reference['reftarget']}"


def setup(app: Any) -> dict[str, Any]:
    """Connect both to Sphinx."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-signature", shown_signature)
    app.connect("autodoc-process-docstring", shapes_as_code)
    app.connect("doctree-read", name_builtins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
