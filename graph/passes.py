"""Passes: what is done to a graph before it runs as a program, where nothing is differentiated."""

from __future__ import annotations

from typing import Any

from .graph import Graph, Node, Value

__all__ = ["merge_common", "optimize"]


def optimize(graph: Graph) -> Graph:
    """Return a graph that computes the same with less; the inputs keep their names."""
    made = graph.copy()
    merge_common(made)
    made.remove_unused()
    return made


def merge_common(graph: Graph) -> int:
    """Have calls that are alike be made once; return how many went."""
    known: dict[Any, Node] = {}
    kept = {id(value) for value in graph.outputs()}
    removed = 0
    for node in list(graph.nodes):
        if node.op.random or node.updates or not node.outputs:
            continue
        if any([id(value) in kept for value in node.outputs]):
            continue  # what is returned is memory of its own
        key = (node.op, node.records, _key(node.args))
        try:
            first = known.setdefault(key, node)
        except TypeError:  # an argument that has no hash
            continue
        if first is not node:
            for old, new in zip(node.outputs, first.outputs, strict=True):
                graph.replace(old, new)
            graph.nodes.remove(node)
            removed += 1
    return removed


def _key(nested: Any) -> Any:
    if isinstance(nested, (tuple, list)):
        return (type(nested), *[_key(item) for item in nested])
    if type(nested) is slice:
        return ("slice", nested.start, nested.stop, nested.step)
    if type(nested) is float or type(nested) is complex:
        return (type(nested), repr(nested))
    return (type(nested), nested) if type(nested) is not Value else nested
