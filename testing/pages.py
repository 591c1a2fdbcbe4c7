"""The generated pages of the documentation: coverage and primitives.

They tell of what tensorplug brings along, whatever else is installed. ``make docs`` writes them into
``docs/``; they are not committed.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable

from tensorplug.core.device.dtypes import ALL_DTYPES, DType
from tensorplug.core.dispatch import coverage, kernel_registry, op_registry
from tensorplug.core.dispatch.coverage import Entry, family_of
from tensorplug.core.dispatch.op_registry import Op
from tensorplug.core.plugins import discovery, registered

from .records import all_records

PACKAGE = "tensorplug"
_NOTE = "<!-- Written by `make docs`. -->\n"
_HEAD = "| op | kernel takes | |\n| --- | --- | --- |"
_GROUPS = {
    "bool": ("bool",),
    "unsigned": ("uint8", "uint16", "uint32", "uint64"),
    "signed": ("int8", "int16", "int32", "int64"),
    "float": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}


def all_pages() -> dict[str, str]:
    """Return the generated pages by file name."""
    discovery.load_all()
    return {"coverage.md": coverage_page(), "primitives.md": primitives_page()}


def dtypes_taken() -> dict[str, list[DType]]:
    """Return, by op, the dtypes that its records say it takes."""
    taken: dict[str, list[DType]] = {}
    for record in all_records():
        known = taken.setdefault(record.op, [])
        known += [dtype for dtype in record.dtypes if dtype not in known]
    return {op: sorted(dtypes, key=ALL_DTYPES.index) for op, dtypes in taken.items()}


def own_ops() -> list[Op]:
    """Return the ops that tensorplug brings along."""
    ours = {"tensorplug", *[r.name for r in registered() if r.package == PACKAGE]}
    return [op for op in op_registry.all_ops() if op.owner in ours]


# --- coverage -----------------------------------------------------------------------------------


def coverage_page() -> str:
    """Return the page with a table per family, for each device that tensorplug brings along."""
    places = [place for place, package in coverage.backends().items() if package == PACKAGE]
    names = {op.name for op in own_ops()}
    entries = [e for e in coverage.coverage(places, dtypes_taken()) if e.op in names]
    text = [
        _NOTE,
        "# Coverage\n",
        "Which ops a backend runs with a kernel of its own, which run as their decomposition into",
        "other ops, and which are missing, by the dtype of the arguments. `python -m tensorplug",
        "coverage` prints the same for every backend that is installed.\n",
    ]
    for plugin, device in places:
        own = [e for e in entries if (e.backend, e.device) == (plugin, device)]
        text += _backend(plugin, device, own)
    return "\n".join(text).rstrip() + "\n"


def _backend(plugin: str, device: str, entries: list[Entry]) -> list[str]:
    ways = Counter(entry.way for entry in entries)
    text = [
        f"## {plugin} on {device}\n",
        f"{len({entry.op for entry in entries})} ops and {len(entries)} entries of op and dtype:",
        f"{ways['kernel']} kernels, {ways['composite']} decompositions, {ways['missing']} missing.\n",
    ]
    columns = ["op", "kind", "kernel", "composite", *["missing"][: ways["missing"]]]
    for family in sorted({entry.family for entry in entries}):
        text += [f"### {family}\n", f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
        own = [entry for entry in entries if entry.family == family]
        for op in dict.fromkeys(entry.op for entry in own):
            by_way = [
                _grouped(e.dtype for e in own if e.op == op and e.way == way) for way in columns[2:]
            ]
            kind = next(entry.kind for entry in own if entry.op == op)
            text.append(f"| `{op}` | {kind} | {' | '.join(by_way)} |")
        text.append("")
    return text


def _grouped(names: Iterable[str]) -> str:
    """Return dtypes in short: a group's name for all of it."""
    present = set(names)
    if len(present) == len(ALL_DTYPES):
        return "all"
    parts: list[str] = []
    for group, members in _GROUPS.items():
        own = [name for name in members if name in present]
        parts += [group] if len(own) == len(members) else own
    return ", ".join(parts)


# --- primitives ---------------------------------------------------------------------------------


def primitives_page() -> str:
    """Return the page that lists what a backend must, and what it may supply."""
    ops = own_ops()
    primitives = [op for op in ops if op.kind == "primitive"]
    fused = [op for op in ops if op.kind == "composite" and _has_kernel(op)]
    others = [op for op in ops if op.kind == "composite" and not _has_kernel(op)]
    text = [
        _NOTE,
        "# Primitives and composites\n",
        f"Of {len(ops)} ops {len(primitives)} are primitives, which a backend has to supply kernels",
        "for; all others then run on it. A kernel takes the arguments that stand beside its name, by",
        "position: raw arrays for tensors, plain values for the rest.\n",
        f"## Primitives ({len(primitives)})\n",
        *_by_family(primitives, _primitive_row, _HEAD),
        f"## Composites that come with a kernel ({len(fused)})\n",
        "They run without one. A backend may supply it for speed, or for the last bit of accuracy.\n",
        *_by_family(fused, _primitive_row, _HEAD),
        f"## Composites ({len(others)})\n",
    ]
    for family in sorted({family_of(op) for op in others}):
        names = [f"`{op.name}`" for op in others if family_of(op) == family]
        text += [f"**{family}**: {', '.join(names)}\n"]
    return "\n".join(text).rstrip() + "\n"


def _has_kernel(op: Op) -> bool:
    return any(k.op == op.name and _is_ours(k.plugin) for k in kernel_registry.all_kernels())


def _is_ours(plugin: str) -> bool:
    return any(r.name == plugin and r.package == PACKAGE for r in registered())


def _by_family(ops: list[Op], row: Callable[[Op], str], head: str) -> list[str]:
    text = []
    for family in sorted({family_of(op) for op in ops}):
        text += [f"### {family}\n", head]
        text += [row(op) for op in ops if family_of(op) == family]
        text.append("")
    return text


def _primitive_row(op: Op) -> str:
    doc = (inspect.getdoc(op.function) or "").partition("\n\n")[0].replace("\n", " ")
    marks = [name for name in ("pointwise", "view") if getattr(op, name)]
    if len(op.outputs) > 1:
        marks.append(f"returns {', '.join(op.outputs)}")
    note = f" ({'; '.join(marks)})" if marks else ""
    doc = doc.replace("|", "\\|").replace(":func:", "")
    return f"| `{op.name}` | `{', '.join(op.parameters)}` | {doc}{note} |"
