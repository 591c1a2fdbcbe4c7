"""How notebooks show a module: a tree that unfolds, with the parameters of each part."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .parameter import is_lazy

if TYPE_CHECKING:
    from .module import Module

_INDENT = "margin-left: 1.2em; font-family: monospace"


def as_html(module: Module, name: str = "", *, unfolded: bool = True) -> str:
    """Return a module as nested ``<details>``, those inside of it folded."""
    known = [p for p in module.parameters() if not is_lazy(p)]
    count = sum(parameter.numel() for parameter in known)
    extra = module.extra_repr().replace("\n", ", ")
    text = escape(f"{name} {module._get_name()}({extra})".strip())
    if count:
        text += f' <span style="color: gray">{count:,} parameters</span>'
    below = [(n, child) for n, child in module._modules.items() if child is not None]
    if not below:
        return f'<div style="{_INDENT}">{text}</div>'
    inside = "".join(as_html(child, name, unfolded=False) for name, child in below)
    state = " open" if unfolded else ""
    return f'<details style="{_INDENT}"{state}><summary>{text}</summary>{inside}</details>'
