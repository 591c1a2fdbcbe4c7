"""The breadth table's measurements, and the part of the page of figures that they give."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from . import breadth_causes
from .database import NAMESPACES

SIZES = {"small": 0, "1e4": 10_000, "1e6": 1_000_000, "1e7": 10_000_000}
ABOVE = (1.1, 2.0)  # torch's time: shares of operators
WORST = 10
TOO_MUCH_MEMORY = "memory"  # in the message of what torch raises then, which is no MemoryError
BEGIN, END = "<!-- breadth table: begin -->", "<!-- breadth table: end -->"

_NONE = "a gradient that is zero everywhere is None here"
_LOWER = "torch gives a gradient to the half of the matrix that is not read"
_SIGNS = "the gradient depends on the vectors' signs, which may be any"
_MASKED = "torch gives NaN to rows that are masked whole"
#: Backward passes whose numbers differ for a reason.
EXPLAINED = {
    "addmm": "sums of five million numbers at 1e7: beside float64 torch's are off by 0.003, these by 0.001",
    "addr": _NONE,
    "as_strided_scatter": "torch gives 1, not 0, to elements that are overwritten",
    "cholesky_inverse": _LOWER,
    "cholesky_solve": _LOWER,
    "linalg.eigh": _SIGNS,
    "linalg.svd": _SIGNS,
    "masked.amax": _MASKED,
    "masked.amin": _MASKED,
    "masked.prod": _MASKED,
    "nn.functional.ctc_loss": "torch's holds only behind log_softmax",
    "norm": _NONE,
    "svd": _SIGNS,
}


@dataclass(frozen=True)
class Cell:
    """One operator at one size, in one direction.

    Parameters
    ----------
    name, namespace, size, way : str
        ``way`` is "forward" or "backward", which stands for both.
    ours, theirs : float
        Median seconds per call.
    verdict : str
        Of the numbers: "agree", "random" (shapes and dtypes agree), "DIFFER".
    error : str
        Why it was not timed, or empty.
    """

    name: str
    namespace: str
    size: str
    way: str
    ours: float = math.nan
    theirs: float = math.nan
    verdict: str = ""
    error: str = ""

    @property
    def ratio(self) -> float:
        """tensorplug's time over torch's."""
        return self.ours / self.theirs


def columns_of(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Return the sizes and ways that there are, the sizes in their order, then by dtype as they came."""
    found = dict.fromkeys((cell.size, cell.way) for cell in cells)
    return sorted(found, key=lambda c: (list(SIZES).index(c[0].split()[0]), c[1] == "backward"))


def summary(cells: Sequence[Cell]) -> list[str]:
    """Return the Markdown table of the means and shares per namespace."""
    columns = columns_of(cells)
    names = {"forward": "forward", "backward": "and backward"}
    head = " | ".join(f"{size}, {names[way]}" for size, way in columns)
    lines = [f"| namespace | {head} |", f"| --- |{' --- |' * len(columns)}"]
    for namespace in ("top level", *NAMESPACES, "all"):
        entries = []
        for column in columns:
            ratios = [
                cell.ratio
                for cell in cells
                if (cell.size, cell.way) == column and namespace in (cell.namespace, "all")
            ]
            entries.append(_entry(ratios))
        lines.append(f"| {namespace} | {' | '.join(entries)} |")
    return lines


def _entry(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    shares = "/".join(f"{sum(r > limit for r in ratios) / len(ratios):.0%}" for limit in ABOVE)
    return f"{geometric_mean(ratios):.2f}, {shares} of {len(ratios)}"


def worst(cells: Sequence[Cell]) -> list[str]:
    """Return a line per namespace, size and way with the operators that are slowest beside torch."""
    lines = []
    for namespace in ("top level", *NAMESPACES):
        for size, way in columns_of(cells):
            found = [c for c in cells if (c.namespace, c.size, c.way) == (namespace, size, way)]
            found.sort(key=lambda cell: -cell.ratio)
            listed = [f"{c.name} {c.ratio:.1f}" for c in found[:WORST] if c.ratio > ABOVE[0]]
            if listed:
                names = ", ".join(one.removeprefix(f"{namespace}.") for one in listed)
                lines.append(f"- {namespace}, {size}, {way}: {names}")
    return lines


def cells_of(path: Path) -> list[Cell]:
    """Return the measurements that a run wrote."""
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    missing: Any = math.nan
    names = [field.name for field in fields(Cell)]
    return [Cell(**{n: missing if row[n] is None else row[n] for n in names}) for row in rows]


def page(cells: Sequence[Cell], about: str) -> str:
    """Return the part of the page of figures that a run gives."""
    timed = [cell for cell in cells if not cell.error]
    legend = (
        f"{about} Geometric mean of the ratios to torch, share above {ABOVE[0]} and above {ABOVE[1]:g}, "
        "operators:"
    )
    differ = sorted({cell.name for cell in timed if cell.verdict == "DIFFER"})
    told = [name if not (why := EXPLAINED.get(name)) else f"{name} ({why})" for name in differ]
    failed = sorted({c.name for c in cells if c.error and c.size.startswith("small")})
    notes = [
        f"Numbers that differ from torch's: {', '.join(told) or 'none'}.",
        f"Not timed, since one of the libraries refuses the sample: {', '.join(failed) or 'none'}.",
        *too_large(cells),
    ]
    parts = [legend, "\n".join(summary(timed)), "Worst first:", "\n".join(worst(timed))]
    if explained := breadth_causes.causes(timed):
        parts += [f"Small calls above {breadth_causes.LIMIT}, by cause:", "\n".join(explained)]
    parts += notes
    return "\n\n".join(parts)


def too_large(cells: Sequence[Cell]) -> list[str]:
    """Return a line per size and way with the larger forms that were left out, by what they needed."""
    lines = []
    for size, way in columns_of([c for c in cells if c.error and not c.size.startswith("small")]):
        found = [c for c in cells if c.error and (c.size, c.way) == (size, way)]
        named: dict[str, list[str]] = {}
        for cell in found:
            reason = TOO_MUCH_MEMORY if TOO_MUCH_MEMORY in cell.error.lower() else cell.error
            named.setdefault(reason, []).append(cell.name)
        said = (f"{', '.join(names)} ({reason})" for reason, names in named.items())
        lines.append(f"Left out at {size}, {way}: {'; '.join(said)}.")
    return lines


def write_between(path: Path, text: str) -> None:
    """Put a text between the markers in a file."""
    content = path.read_text("utf-8")
    before, mark, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{path} has no markers {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")
