"""Rewriting: find a part of a graph by an example of it, and put another one in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .capture import capture
from .graph import Graph
from .nodes import Node, Value, map_values

__all__ = ["Match", "find", "replace_pattern"]


class Match(NamedTuple):
    """A part of a graph that a pattern fits.

    Attributes
    ----------
    inputs : list of Value
        What stands for the pattern's arguments.
    nodes : list of Node
        The nodes of the part, in order.
    output : Value
        What stands for the pattern's result.
    """

    inputs: list[Value]
    nodes: list[Node]
    output: Value


def find(graph: Graph, pattern: Graph) -> list[Match]:
    """Return where in a graph the calls of a pattern stand, of which only the last is used elsewhere.

    Arguments that are no tensors must be equal, shapes and dtypes need not. No node is in two matches.
    """
    users = graph.users()
    kept = set(graph.outputs())
    taken: set[Node] = set()
    found: list[Match] = []
    for node in graph.nodes:
        match = _match(pattern, node)
        if match is None or not taken.isdisjoint(match.nodes):
            continue
        inside = set(match.nodes)
        within = [
            value for part in match.nodes for value in part.outputs if value is not match.output
        ]
        if any([value in kept or not inside.issuperset(users.get(value, ())) for value in within]):
            continue
        match.nodes.sort(key=graph.nodes.index)
        taken |= inside
        found.append(match)
    return found


def _match(pattern: Graph, last: Node) -> Match | None:
    """Return how a pattern fits with a node as its last one."""
    known: dict[Value, Value] = {}
    nodes: list[Node] = []

    def fits(wanted: Any, given: Any) -> bool:
        if type(wanted) is Value:
            if type(given) is not Value:
                return False
            if wanted in known:
                return known[wanted] is given
            known[wanted] = given
            if wanted.node is None:
                return True
            if given.node is None:
                return False
            return wanted.node.outputs.index(wanted) == given.node.outputs.index(
                given
            ) and node_fits(wanted.node, given.node)
        if isinstance(wanted, (tuple, list)):
            return (
                isinstance(given, (tuple, list))
                and len(wanted) == len(given)
                and all(map(fits, wanted, given))
            )
        return type(wanted) is type(given) and bool(wanted == given)

    def node_fits(wanted: Node, given: Node) -> bool:
        if given in nodes:
            return True
        nodes.append(given)
        return wanted.op is given.op and fits(wanted.args, given.args)

    result = pattern.result
    assert type(result) is Value
    assert result.node is not None
    position = result.node.outputs.index(result)
    if last.op is not result.node.op or position >= len(last.outputs):
        return None
    output = last.outputs[position]
    if not fits(result, output):
        return None
    return Match([known.get(value, value) for value in pattern.arguments], nodes, output)


def replace_pattern(
    graph: Graph,
    pattern: Callable[..., Any],
    replacement: Callable[..., Any],
    *examples: Any,
    where: Callable[[Match], bool] | None = None,
) -> list[Match]:
    """Put a function's calls in the place of another's, wherever those stand in a graph; return where.

    Parameters
    ----------
    graph : Graph
        Is changed.
    pattern, replacement : callable
        Functions of the same tensors that return one tensor, of the same shape and dtype.
    *examples : Tensor
        Arguments with which `pattern` runs, once; of "meta" they cost nothing. `replacement` runs on meta
        tensors of the shapes that were found.
    where : callable, optional
        ``where(match)`` says whether a place is meant.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.graph import capture, replace_pattern
    >>> graph = capture(lambda x: tp.log(tp.exp(x) + 1), tp.ones(2))
    >>> places = replace_pattern(
    ...     graph, lambda x: tp.log(tp.exp(x) + 1), tp.nn.functional.softplus, tp.ones(1)
    ... )
    >>> print(graph)
    graph(%x: float32[2]):
      %softplus: float32[2] = softplus(%x)
      return %softplus
    """
    done: list[Match] = []
    replaced: dict[Value, Value] = {}
    for match in find(graph, capture(pattern, *examples)):
        if where is not None and not where(match):
            continue
        inputs = [replaced.get(value, value) for value in match.inputs]
        part = capture(replacement, *[value.meta() for value in inputs])
        replaced[match.output] = splice(graph, part, inputs, match.nodes[-1], match.output)
        used = set(match.nodes)
        graph.nodes = [node for node in graph.nodes if node not in used]
        done.append(match)
    return done


def splice(graph: Graph, part: Graph, inputs: list[Value], before: Node, output: Value) -> Value:
    """Put another graph's nodes before a node; its result takes the place of a value, and is returned."""
    known: dict[Value, Value] = dict(zip(part.arguments, inputs, strict=True))
    for value in part.inputs:
        if value.kind != "input":
            known[value] = graph.add_input(value.name, part.state[value.name], value.kind)
    position = graph.nodes.index(before)
    for number, node in enumerate(part.nodes):
        twin = Node(
            node.op, map_values(node.args, known.__getitem__),
            updates=node.updates, records=before.records, source=before.source, part=before.part,
        )  # fmt: skip
        for value in node.outputs:
            known[value] = graph.add_output(twin, value)
            known[value].device = output.device
        twin.result = map_values(node.result, known.__getitem__)
        graph.nodes.insert(position + number, twin)
    graph.replace(output, known[part.result])
    return known[part.result]
