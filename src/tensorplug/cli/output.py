"""How the commands print: tables in colour where `rich` is installed, aligned text where it is not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from tensorplug.core.dispatch import op_registry

Row = Sequence[object]


def print_json(value: Any) -> None:
    """Print a value for scripts."""
    print(json.dumps(value, indent=1))


def complain(text: str) -> int:
    """Print why a command cannot be done to stderr; return its exit status."""
    print(f"tensorplug: {text}", file=sys.stderr)
    return 1


def positive(text: str) -> int:
    """Return an argument as a number above 0, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number


def no_op(pattern: str) -> str:
    """Return that `pattern` matches no op, and the names near it."""
    try:
        op_registry.get_op(pattern)
    except KeyError as error:
        near = str(error.args[0]).partition("; ")[2]
    else:  # an op without what was asked for
        near = ""
    return f"--op: no op here matches {pattern!r}" + (f"; {near}" if near else "")


def heading(text: str) -> None:
    """Print a title."""
    console = _console()
    if console is None:
        print(text)
    else:
        console.print(f"[bold]{_escaped(text)}[/bold]")


def table(columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows under their titles and a blank line below; numbers stand to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    right = [all(_is_number(row[n]) for row in rows) and bool(rows) for n in range(len(columns))]
    console = _console()
    if console is None:
        widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
        for line in (columns, *texts):
            cells = [
                f"{cell:>{width}}" if to_right else f"{cell:{width}}"
                for cell, width, to_right in zip(line, widths, right, strict=True)
            ]
            print(("  " + "  ".join(cells)).rstrip())
        print()
        return
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for title, to_right in zip(columns, right, strict=True):
        shown.add_column(title, justify="right" if to_right else "left", overflow="fold")
    for line in texts:
        shown.add_row(*[_escaped(cell) for cell in line])
    console.print(shown, "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _console() -> Any:
    """Return rich's console if a person is reading and rich is installed."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
