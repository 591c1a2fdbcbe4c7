"""The table of lowerings: functions that write an op's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tensorplug.core.dispatch.op_registry import has_op
from tensorplug.graph import Node

from ..writing import Writer

__all__ = ["LOWERINGS", "Lowering", "lowering"]

#: Writes the nodes of a call, and returns the names of what it makes.
Lowering = Callable[..., Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])

#: By the name of the op.
LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[_Function], _Function]:
    """Register what writes ops: a function of the writer, the node, and the arguments by name."""

    def register(function: _Function) -> _Function:
        for name in names:
            LOWERINGS[name] = function
        return function

    return register


def lower(writer: Writer, node: Node) -> list[str]:
    """Write the nodes of a call; return the names of what it makes."""
    made = LOWERINGS[node.op.name](writer, node, **node.arguments)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def unknown() -> list[str]:
    """Return the names in the table that no op has."""
    return [name for name in LOWERINGS if not has_op(name)]
