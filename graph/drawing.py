"""Drawings: a graph as SVG, laid out in rows by how many calls lead to each node.

The order within a row follows the middle of what a node takes (Sugiyama and others, 1981), once downwards and
once upwards; that is enough to read a network, and needs no program for drawing.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import Graph
    from .nodes import Node, Value

__all__ = ["svg"]

_LETTER, _LINE, _GAP, _BETWEEN = 6.2, 14, 22, 34
_COLORS = {
    "input": "#e8f0fe", "parameter": "#fef3e0", "buffer": "#fef3e0", "constant": "#f3e8fd",
    "op": "#ffffff", "result": "#e6f4ea",
}  # fmt: skip


class _Box:
    """A node, an input or the result: what is written in it, and where it stands."""

    def __init__(self, kind: str, lines: list[str], hint: str = "") -> None:
        self.kind = kind
        self.lines = lines
        self.hint = hint
        self.width = 14 + _LETTER * max(map(len, lines))
        self.height = 8 + _LINE * len(lines)
        self.row = 0
        self.x = self.y = 0.0
        self.above: list[_Box] = []
        self.below: list[_Box] = []

    def svg(self) -> str:
        """Return the box."""
        begin = (
            f'<g><title>{escape(self.hint)}</title><rect x="{self.x - self.width / 2:.1f}" '
            f'y="{self.y:.1f}" width="{self.width:.1f}" height="{self.height}" rx="4" '
            f'fill="{_COLORS[self.kind]}" stroke="#80868b"/>'
        )
        parts = [begin]
        for number, line in enumerate(self.lines):
            weight = ' font-weight="bold"' if number == 0 else ""
            y = self.y + _LINE * (number + 1)
            parts.append(f'<text x="{self.x:.1f}" y="{y:.1f}"{weight}>{escape(line)}</text>')
        return "".join([*parts, "</g>"])

    def line_to(self, other: _Box) -> str:
        """Return the line from a box to one that takes its value."""
        y, end = self.y + self.height, other.y
        middle = (y + end) / 2
        return (
            f'<path d="M{self.x:.1f},{y:.1f} C{self.x:.1f},{middle:.1f} '
            f'{other.x:.1f},{middle:.1f} {other.x:.1f},{end:.1f}"/>'
        )


def svg(graph: Graph) -> str:
    """Return a graph as a picture: boxes for inputs, calls and the result, lines for values."""
    boxes = _boxes(graph)
    rows: list[list[_Box]] = [[] for _ in range(1 + max(box.row for box in boxes))]
    for box in boxes:
        rows[box.row].append(box)
    _place(rows)
    for row in rows[1:]:
        row.sort(key=_above)
        _spread(row)
    for row in rows[-2::-1]:
        row.sort(key=_below)
        _spread(row)
    height = _place(rows)
    width = max(box.x + box.width / 2 for box in boxes) + _GAP
    left = min(0.0, min(box.x - box.width / 2 for box in boxes) - _GAP)
    lines = [box.line_to(other) for box in boxes for other in box.below]
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width - left:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.0f} 0 {width - left:.0f} {height:.0f}" font-family="monospace" '
        'font-size="10" text-anchor="middle"><g fill="none" stroke="#9aa0a6">'
    )
    return "".join([begin, *lines, "</g>", *[box.svg() for box in boxes], "</svg>"])


def _boxes(graph: Graph) -> list[_Box]:
    """Return boxes with their rows and neighbours."""
    from .nodes import values_in

    made: dict[Value, _Box] = {}
    boxes: list[_Box] = []

    def joined(box: _Box, given: Any) -> None:
        for value in dict.fromkeys(given):
            source = made[value]
            box.above.append(source)
            source.below.append(box)
            box.row = max(box.row, source.row + 1)
        boxes.append(box)

    for value in graph.inputs:
        made[value] = box = _Box(value.kind, [f"%{value.name}", value.type], value.kind)
        boxes.append(box)
    for node in graph.nodes:
        box = _Box("op", [node.op.name, *_lines(node)], f"{node!r}\n{node.source}".strip())
        for value in node.outputs:
            made[value] = box
        joined(box, node.values())
    written = [f"write %{old.name}" for old, _ in graph.writes]
    joined(
        _Box("result", ["return", *written]),
        [*values_in(graph.result), *[n for _, n in graph.writes]],
    )
    for box in boxes:  # inputs stand above the first call that takes them
        if not box.above and box.below:
            box.row = max(0, min(other.row for other in box.below) - 1)
    return boxes


def _lines(node: Node) -> list[str]:
    return [f"%{value.name}: {value.type}" for value in node.outputs[:3]]


def _above(box: _Box) -> float:
    return _middle(box, box.above)


def _below(box: _Box) -> float:
    return _middle(box, box.below)


def _middle(box: _Box, others: list[_Box]) -> float:
    return sum([other.x for other in others]) / len(others) if others else box.x


def _spread(row: list[_Box]) -> None:
    """Put the boxes of a row beside each other, around the middle."""
    x = -(sum([box.width for box in row]) + _GAP * (len(row) - 1)) / 2
    for box in row:
        box.x = x + box.width / 2
        x += box.width + _GAP


def _place(rows: list[list[_Box]]) -> float:
    """Put rows below each other; return the height of all."""
    y = float(_GAP)
    for row in rows:
        _spread(row)
        for box in row:
            box.y = y
        y += max([box.height for box in row], default=0) + _BETWEEN
    return y
