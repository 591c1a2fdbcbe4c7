"""Replacing parts of a graph that look like a pattern."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorplug.nn import Module

from .graph import Graph
from .graph_module import GraphModule, _assign_attr, reached
from .node import Node, map_arg
from .tracer import symbolic_trace


class Match(NamedTuple):
    """A place where a pattern was found."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass(slots=True)
class ReplacedPatterns:
    """A replacement that was made."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _traced(pattern: Any) -> tuple[Graph, GraphModule | None]:
    """Return a pattern's graph, and what has the modules and attributes that it names."""
    if isinstance(pattern, Graph):
        return pattern, pattern.owning_module
    module = pattern if isinstance(pattern, GraphModule) else symbolic_trace(pattern)
    return module.graph, module


def _matches(pattern: Any, given: Any, found: dict[Node, Any]) -> bool:
    """Return whether a value of the program is one of the pattern; note what its nodes stand for."""
    if isinstance(pattern, Node):
        if pattern in found:
            known = found[pattern]
            return known is given or (not isinstance(given, Node) and bool(known == given))
        if pattern.op == "placeholder":
            found[pattern] = given
            return True
        if not isinstance(given, Node) or pattern.op != given.op or pattern.target != given.target:
            return False
        found[pattern] = given
        return _matches(pattern.args, given.args, found) and _matches(
            pattern.kwargs, given.kwargs, found
        )
    if isinstance(given, Node) or type(pattern) is not type(given):
        return False
    if isinstance(pattern, (tuple, list)):
        return len(pattern) == len(given) and all(
            [_matches(a, b, found) for a, b in zip(pattern, given, strict=True)]
        )
    if isinstance(pattern, dict):
        return pattern.keys() == given.keys() and all(
            [_matches(pattern[key], given[key], found) for key in pattern]
        )
    return bool(pattern == given)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace each part of a module's graph that is a pattern.

    Parameters
    ----------
    gm : GraphModule
        It is changed.
    pattern, replacement : callable or GraphModule
        Of the same arguments. Parts that overlap, or whose inner values are used elsewhere, stay.

    Returns
    -------
    list of Match
        Where it was found.

    Examples
    --------
    >>> import tensorplug as tp
    >>> gm = tp.fx.symbolic_trace(lambda x: tp.relu(x) + 1)
    >>> len(replace_pattern(gm, lambda x: tp.relu(x), lambda x: tp.sigmoid(x)))
    1
    >>> gm(tp.zeros(1))
    tensor([1.5000])
    """
    wanted, _ = _traced(pattern)
    made, owner = _traced(replacement)
    names: dict[str, str] | None = None
    anchors = _returned(wanted)
    inputs = [node for node in wanted.nodes if node.op == "placeholder"]
    new_inputs = [node for node in made.nodes if node.op == "placeholder"]
    result: list[Match] = []
    taken: set[Node] = set()
    replaced: dict[Node, Any] = {}
    for node in list(gm.graph.nodes):
        found = None if node._erased else _match_of_all(anchors, [node], gm.graph, {})
        if found is None:
            continue
        inner = [
            value
            for key, value in found.items()
            if key.op != "placeholder" and isinstance(value, Node)
        ]
        if any(value in taken for value in inner):
            continue
        given_out = [found[anchor] for anchor in anchors]
        hidden = [value for value in inner if value not in given_out]
        if any(user not in inner for value in hidden for user in value.users):
            continue
        values = {
            new: replaced.get(found[old], found[old])
            if isinstance(found[old], Node)
            else found[old]
            for new, old in zip(new_inputs, inputs, strict=True)
        }
        place = _place(gm.graph, given_out, inner, list(values.values()))
        if place is None:
            continue
        taken.update(inner)
        result.append(Match(node, dict(found)))
        if names is None:
            names = _shared(gm, made, owner)
        with gm.graph.inserting_before(place):
            for step in made.nodes:
                if step.op not in ("placeholder", "output"):
                    copied = values[step] = gm.graph.node_copy(step, values.__getitem__)
                    if step.op in ("call_module", "get_attr"):
                        copied.target = names.get(step.target, step.target)
        new_out = map_arg(made.output_node().args[0], values.__getitem__)
        for old, new in zip(given_out, new_out if len(anchors) > 1 else [new_out], strict=True):
            old.replace_all_uses_with(new)
            replaced[old] = new
        for value in reversed([n for n in gm.graph.nodes if n in inner]):
            gm.graph.erase_node(value)
    if result and isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
    gm.recompile()
    return result


def _returned(pattern: Graph) -> list[Node]:
    """Return the nodes whose values a pattern returns."""
    returned = pattern.output_node().args[0]
    anchors = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if not anchors or not all(isinstance(anchor, Node) for anchor in anchors):
        raise NotImplementedError(
            "replace_pattern(): a pattern returns one computed value, or a tuple of them, got "
            f"{returned!r}"
        )
    return anchors


def _match_of_all(
    anchors: list[Any], nodes: Iterable[Node], graph: Graph, found: dict[Node, Any]
) -> dict[Node, Any] | None:
    """Return what the pattern's nodes stand for, with one of these nodes as the first anchor."""
    for node in nodes:
        known = dict(found)
        if node._erased or not _matches(anchors[0], node, known):
            continue
        rest = anchors[1:]
        whole = known if not rest else _match_of_all(rest, graph.nodes, graph, known)
        if whole is not None:
            return whole
    return None


def _place(graph: Graph, returned: list[Any], inner: list[Any], values: list[Any]) -> Node | None:
    """Return before which node the replacement may stand, None if it has no place.

    That is behind what it takes and before what uses the values that the pattern returns.
    """
    if len(returned) == 1:
        node: Node = returned[0]
        return node
    at = {node: index for index, node in enumerate(graph.nodes)}
    users = [user for value in returned for user in value.users if user not in inner]
    place = min(users or returned, key=at.__getitem__)
    taken = [at[value] for value in values if isinstance(value, Node)]
    return place if max(taken, default=-1) < at[place] else None


def _shared(gm: GraphModule, made: Graph, owner: GraphModule | None) -> dict[str, str]:
    """Give a module copies of what a replacement names and it lacks; return the names that it has there.

    A constant of the replacement gets a name of its own: those of two programs are numbered alike.
    """
    names: dict[str, str] = {}
    for node in made.nodes:
        if owner is None or node.op not in ("call_module", "get_attr") or node.target in names:
            continue
        value, target, number = reached(owner, node.target), node.target, 0
        while target.startswith("_tensor_constant") and getattr(gm, target, value) is not value:
            target, number = f"_tensor_constant{number}", number + 1
        try:
            reached(gm, target)
        except RuntimeError:
            own = target.startswith("_tensor_constant")
            _assign_attr(value if own else copy.deepcopy(value), gm, target)
        names[node.target] = target
    return names
