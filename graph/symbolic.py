"""Symbolic sizes: numbers in a graph that follow from the sizes of its arguments.

A graph is captured for tensors of given sizes. Where one of another size gives the same calls, the numbers
that differ between the two are taken for expressions in the sizes: :func:`generalize` finds them,
:meth:`Size.at` gives the number for some sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, islice
from typing import Any

from .graph import Graph
from .nodes import Node, Value

__all__ = ["Dynamic", "Size", "bound", "generalize"]


class Size:
    """A number that follows from sizes: a sum of products of them.

    Attributes
    ----------
    terms : dict
        For each product, the tuple of its sizes' names, the factor.

    Examples
    --------
    >>> from tensorplug.graph.symbolic import Size
    >>> size = Size({("batch",): 4, (): 1})
    >>> size, size.at({"batch": 2})
    (4*batch + 1, 9)
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple[str, ...], Fraction | int]) -> None:
        self.terms = {names: Fraction(factor) for names, factor in terms.items() if factor}

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the number for given sizes.

        Raises
        ------
        ValueError
            If it is no integer.
        """
        total = Fraction(0)
        for names, factor in self.terms.items():
            product = factor
            for name in names:
                product *= sizes[name]
            total += product
        if total.denominator != 1:
            raise ValueError(f"{self!r} is no integer for {dict(sizes)}")
        return int(total)

    @property
    def name(self) -> str | None:
        """The name of a size that stands by itself; None of an expression."""
        if len(self.terms) != 1:
            return None
        (names,) = self.terms
        return names[0] if len(names) == 1 and self.terms[names] == 1 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        parts = []
        for names, factor in sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            product = "*".join(names)
            parts.append(
                str(factor) if not names else product if factor == 1 else f"{factor}*{product}"
            )
        return " + ".join(parts) or "0"


class _Differs(Exception):
    """Graphs are of other calls."""


def generalize(graphs: Sequence[tuple[Mapping[str, int], Graph]]) -> Graph | None:
    """Return one graph for several, captured at different sizes; None if they are not of the same calls.

    Parameters
    ----------
    graphs : sequence of (sizes, Graph)
        At least one; of n sizes, 2ⁿ graphs in which each takes two values say all products, and n + 1, in
        which at most one is not the first's, all sums.
    """
    settings = [sizes for sizes, _ in graphs]
    first = graphs[0][1]
    made = first.copy()
    others = [graph for _, graph in graphs]
    fit = _Fit(settings)
    try:
        if (
            len({len(graph.nodes) for graph in others}) != 1
            or len({len(g.inputs) for g in others}) != 1
        ):
            raise _Differs
        numbers = [_numbered(graph) for graph in others]
        for value, *same in zip(made.inputs, *[graph.inputs for graph in others], strict=True):
            _merge_value(fit, value, same)
        for node, *nodes in zip(made.nodes, *[graph.nodes for graph in others], strict=True):
            _merge_node(fit, node, nodes, numbers)
        fit.merge([graph.writes for graph in others], numbers)
        # Of what is returned beside tensors sizes may be part, too.
        made.result = _filled(made.result, fit.merge([graph.result for graph in others], numbers))
    except (_Differs, ValueError):
        return None
    return made


def _numbered(graph: Graph) -> dict[Value, int]:
    values = [*graph.inputs, *[value for node in graph.nodes for value in node.outputs]]
    return {value: number for number, value in enumerate(values)}


def _merge_value(fit: _Fit, value: Value, same: list[Value]) -> None:
    if len({(v.dtype, v.device, v.kind, len(v.shape)) for v in same}) != 1:
        raise _Differs
    value.shape = tuple(
        [fit.number(list(sizes)) for sizes in zip(*[v.shape for v in same], strict=True)]
    )


def _merge_node(fit: _Fit, node: Node, nodes: list[Node], numbers: list[dict[Value, int]]) -> None:
    if len({(n.op, n.updates, n.records, len(n.outputs)) for n in nodes}) != 1:
        raise _Differs
    merged = fit.merge([n.args for n in nodes], numbers)
    node.args = _filled(node.args, merged)
    for value, *same in zip(node.outputs, *[n.outputs for n in nodes], strict=True):
        _merge_value(fit, value, same)


def _filled(own: Any, merged: Any) -> Any:
    """Return merged arguments with a copy's own values in the place of those that were merged."""
    if type(own) is Value:
        return own
    if isinstance(own, (tuple, list)) and not hasattr(own, "_fields"):
        return _made_of(type(own), [_filled(a, b) for a, b in zip(own, merged, strict=True)])
    if type(own) is dict:
        return {key: _filled(item, merged[key]) for key, item in own.items()}
    return merged


def _kind(item: Any) -> Any:
    """Return the class of an argument; a shape is a tuple."""
    return tuple if isinstance(item, tuple) and not hasattr(item, "_fields") else type(item)


def _made_of(kind: Any, items: list[Any]) -> Any:
    """Return a sequence like another one; of shapes, which hold integers only, a tuple."""
    if hasattr(kind, "_fields"):
        return kind(*items)
    return items if issubclass(kind, list) else tuple(items)


class _Fit:
    """Finds the expressions in sizes whose values are known for some settings of them."""

    def __init__(self, settings: list[Mapping[str, int]]) -> None:
        self.settings = settings
        names = sorted({name for sizes in settings for name in sizes})
        products = chain.from_iterable(
            combinations(names, count) for count in range(len(names) + 1)
        )
        self.products = list(islice(products, len(settings)))

    def number(self, values: list[Any]) -> Any:
        """Return what numbers have in common: themselves, or an expression."""
        if all([value == values[0] and type(value) is type(values[0]) for value in values]):
            return values[0]
        if any([type(value) is not int for value in values]):
            raise _Differs
        rows: list[list[Fraction]] = []
        for sizes, value in zip(self.settings, values, strict=True):
            row = []
            for product in self.products:
                factor = 1
                for name in product:
                    factor *= sizes[name]
                row.append(Fraction(factor))
            rows.append([*row, Fraction(value)])
        return Size(dict(zip(self.products, _solved(rows), strict=True)))

    def merge(self, nested: list[Any], numbers: list[dict[Value, int]]) -> Any:
        """Return what nested arguments have in common."""
        first = nested[0]
        kind = _kind(first)
        if any([_kind(item) is not kind for item in nested]):
            raise _Differs
        if kind is Value:
            if len({known[value] for known, value in zip(numbers, nested, strict=True)}) != 1:
                raise _Differs
            return first
        if kind is slice:
            parts = [[part.start, part.stop, part.step] for part in nested]
            return slice(*self.merge(parts, numbers))
        if isinstance(first, (tuple, list)):
            if len({len(item) for item in nested}) != 1:
                raise _Differs
            items = [self.merge(list(item), numbers) for item in zip(*nested, strict=True)]
            return _made_of(kind, items)
        if kind is dict:
            if any([item.keys() != first.keys() for item in nested]):
                raise _Differs
            return {key: self.merge([item[key] for item in nested], numbers) for key in first}
        if kind is int:
            return self.number(nested)
        if kind is float and all([repr(item) == repr(first) for item in nested]):
            return first
        if any([item is not first and item != first for item in nested]):
            raise _Differs
        return first


def _solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Return the solution of linear equations, whose right sides are the last column.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    count = len(rows[0]) - 1
    for column in range(count):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            raise ValueError("the sizes do not tell the expressions apart")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [entry / lead for entry in rows[column]]
        for other in range(len(rows)):
            if other != column and rows[other][column]:
                factor = rows[other][column]
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[column], strict=True)
                ]
    if any([row[-1] for row in rows[count:]]):
        raise ValueError("no expression has these values")
    return [row[-1] for row in rows[:count]]


def bound(nested: Any, sizes: Mapping[str, int]) -> Any:
    """Return nested arguments with numbers in the place of expressions, for given sizes."""
    if type(nested) is Size:
        return nested.at(sizes)
    if type(nested) is slice:
        return slice(*[bound(part, sizes) for part in (nested.start, nested.stop, nested.step)])
    if isinstance(nested, (tuple, list)):
        items = [bound(item, sizes) for item in nested]
        return _made_of(type(nested), items)
    if type(nested) is dict:
        return {key: bound(item, sizes) for key, item in nested.items()}
    return nested


def at(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph for given sizes.

    Raises
    ------
    ValueError
        If a number in it is no integer for them.
    """
    made = graph.copy()
    for value in [*made.inputs, *[v for node in made.nodes for v in node.outputs]]:
        value.shape = bound(value.shape, sizes)
    for node in made.nodes:
        node.args = bound(node.args, sizes)
    made.result = bound(made.result, sizes)
    return made


def same(a: Graph, b: Graph) -> bool:
    """Return whether two graphs are of the same calls with the same numbers."""
    sizes: dict[str, int] = {}
    merged = generalize([(sizes, a), (sizes, b)])
    return merged is not None


class Dynamic:
    """Which of the captured graphs are one, for different sizes.

    With the second size that gives the same calls, what differs becomes an expression in it. A graph of a
    third one must be what the expressions say, else it counts by itself.
    """

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = wanted
        self._families: list[_Family] = []

    def add(self, graph: Graph) -> None:
        """Take in a graph that was captured."""
        if self.wanted is not False:
            for family in self._families:
                if family.take(graph):
                    return
        self._families.append(_Family(graph))

    def graphs(self) -> list[Graph]:
        """Return the graphs."""
        return [family.graph for family in self._families]


class _Family:
    def __init__(self, graph: Graph) -> None:
        self.first = self.graph = graph
        self.symbol: tuple[int, int] | None = None  # which input's which dimension the size is

    def take(self, graph: Graph) -> bool:
        """Return whether a graph is this one at another size."""
        if self.symbol is None:
            place = _first_difference(self.first, graph)
            if place is None:
                return False
            settings = [
                ({"s0": g.inputs[place[0]].shape[place[1]]}, g) for g in (self.first, graph)
            ]
            merged = generalize(settings)
            if merged is None:
                return False
            self.graph, self.symbol = merged, place
            return True
        number, dim = self.symbol
        if len(graph.inputs) <= number or len(graph.inputs[number].shape) <= dim:
            return False
        try:
            return same(at(self.graph, {"s0": graph.inputs[number].shape[dim]}), graph)
        except ValueError:
            return False


def _first_difference(a: Graph, b: Graph) -> tuple[int, int] | None:
    if len(a.inputs) != len(b.inputs):
        return None
    for number, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=True)):
        if len(x.shape) != len(y.shape):
            return None
        for dim, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)):
            if m != n:
                return number, dim
    return None
