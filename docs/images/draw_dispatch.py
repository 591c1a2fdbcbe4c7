"""Draws dispatch.svg: a call, the table of kernels, and the packages that fill it.

::

    python docs/images/draw_dispatch.py
"""

from pathlib import Path

BLUE, GREEN, ORANGE, GRAY, INK = "#2563a8", "#2e7d4f", "#b45f06", "#9aa4b2", "#1f2937"
OPS = ("softmax", "conv2d", "mul", "your.op")
DEVICES = ("cpu", "cuda", "yours")
#: The package whose kernel is in each slot; an op without one is computed by its decomposition.
SLOTS = {
    ("softmax", "cpu"): 0, ("softmax", "cuda"): 1, ("softmax", "yours"): None,
    ("conv2d", "cpu"): 0, ("conv2d", "cuda"): 1, ("conv2d", "yours"): 2,
    ("mul", "cpu"): 0, ("mul", "cuda"): 1, ("mul", "yours"): 2,
    ("your.op", "cpu"): 2, ("your.op", "cuda"): None, ("your.op", "yours"): 2,
}  # fmt: skip
PACKAGES = (
    ("cpu_cython", "the default kernels", BLUE),
    ("cuda_cupy", "the device cuda", GREEN),
    ("your package", "a device, kernels, ops", ORANGE),
)
#: The start of the file, and the heads of arrows.
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 330" '
    'font-family="system-ui, -apple-system, Segoe UI, sans-serif" role="img" '
    'aria-label="A call looks up a kernel by op and device in a table that plugins fill">'
)
MARKER = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" '
    f'markerHeight="6" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{GRAY}"/></marker></defs>'
)


def text(x: float, y: float, words: str, size: int = 15, color: str = INK, more: str = "") -> str:
    """Return a text centred at a place."""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="middle" {more}>'
        f"{words}</text>"
    )


def box(x: float, y: float, width: float, height: float, color: str, fill: str = "white") -> str:
    """Return a rectangle with round corners."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
        f'stroke="{color}" stroke-width="2"/>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    """Return a line with a head."""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="2.5" '
        f'marker-end="url(#head)"/>'
    )


def draw() -> str:
    """Return the picture."""
    mono = 'font-family="ui-monospace, Menlo, Consolas, monospace"'
    parts = [
        HEAD,
        MARKER,
        '<rect width="960" height="330" fill="white" rx="10"/>',
        text(120, 36, "your program", 16, INK, 'font-weight="600"'),
        box(20, 52, 200, 104, GRAY, "#f6f8fa"),
        text(120, 84, "x = tp.randn(3, 4)", 14, INK, mono),
        text(120, 108, "y = x.softmax(-1)", 14, INK, mono),
        text(120, 132, "y.sum().backward()", 14, INK, mono),
        box(20, 196, 200, 96, GRAY, "#f6f8fa"),
        text(120, 222, "autograd", 15, INK, 'font-weight="600"'),
        text(120, 246, "one-line formulas,", 14),
        text(120, 268, "written in ops", 14),
        arrow(222, 104, 288, 134, GRAY),
        arrow(222, 244, 288, 214, GRAY),
        text(480, 36, "a table of kernels", 16, INK, 'font-weight="600"'),
    ]
    for column, device in enumerate(DEVICES):
        parts.append(text(416 + column * 92, 66, device, 14, INK, mono))
    for row, op in enumerate(OPS):
        y = 80 + row * 56
        parts.append(text(330, y + 29, op, 14, INK, mono))
        for column, device in enumerate(DEVICES):
            owner = SLOTS[op, device]
            x = 374 + column * 92
            if owner is None:
                parts.append(box(x, y, 84, 46, GRAY))
                parts.append(text(x + 42, y + 28, "from ops", 12, "#6b7280"))
            else:
                color = PACKAGES[owner][2]
                parts.append(box(x, y, 84, 46, color, color))
                parts.append(text(x + 42, y + 28, "kernel", 13, "white"))
    parts.append(text(836, 36, "pip packages", 16, INK, 'font-weight="600"'))
    for number, (name, what, color) in enumerate(PACKAGES):
        y = 80 + number * 76
        parts.append(box(738, y, 202, 60, color))
        parts.append(text(839, y + 26, name, 14, color, 'font-weight="600"'))
        parts.append(text(839, y + 47, what, 13))
        parts.append(arrow(734, y + 30, 656, y + 30, GRAY))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("dispatch.svg").write_text(draw(), encoding="utf-8")
