"""Sizes that depend on data: how many places ``nonzero`` finds, how many elements a mask leaves.

A graph is captured for one such size. As for sizes of arguments that vary, the program is captured again for
others, with results of these ops that are cut off or repeated to another size: what then differs between the
graphs follows from it, as :mod:`.symbolic` finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Self

from tensorplug.core import ops
from tensorplug.core.device.dtypes import bool_
from tensorplug.core.dispatch.op import Op

from .graph import Graph
from .nodes import Node, Value, call, map_leaves, map_values, run_node, tensors_in
from .symbolic import Size, bound

__all__ = ["DataSizes", "evaluate", "resized"]

#: Of ops whose results are as large as data says, the argument that decides.
DECIDED_BY = {
    "argwhere": "input",
    "index": "indices",
    "masked_select": "mask",
    "nonzero": "input",
    "repeat_interleave": "repeats",
    "unique": "input",
    "unique_consecutive": "input",
    "where": "condition",
}
#: Those of which it counts what is not zero.
COUNTING = frozenset(("argwhere", "index", "masked_select", "nonzero", "where"))


class DataSizes:
    """Finds the sizes that depend on data in what a program calls, and sets them.

    Parameters
    ----------
    names : sequence of str
        What they are called, in the order in which they come up; sizes of one name are equal.
    sizes : dict
        What they are to be; else they are what the data says.

    Attributes
    ----------
    found : list of int
        What the data said.
    nodes : list of Node
        The calls that the sizes are of.
    fixed : dict
        The sizes, by name, that data has no say in: nothing was there to find, or one element.
    """

    def __init__(self, names: Sequence[str] = (), sizes: Mapping[str, int] | None = None) -> None:
        self.names = names
        self.sizes = sizes or {}
        self.found: list[int] = []
        self.nodes: list[Node] = []
        self.fixed: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}

    def anew(self) -> Self:
        """Forget what came up, since the program runs again, and return itself."""
        self.found.clear()
        self.nodes.clear()
        self.fixed.clear()
        self._numbers.clear()
        return self

    def names_for(self, taken: Container[str], is_tied: bool) -> list[str]:
        """Return a name for each size that came up: of their own, or one for those that were equal."""
        names: list[str] = []
        for number, size in enumerate(self.found):
            first = self.found.index(size) if is_tied else number
            name = f"u{first}"
            while name in taken:
                name += "_"
            names.append(name)
        return names

    def deciding(self, op: Op, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the tensors that decide how large the results of a call are."""
        name = DECIDED_BY.get(op.name)
        if name is None:
            return []
        given = dict(zip(op.names, arguments, strict=True))
        if given.get("output_size") is not None:
            return []
        found = tensors_in(given[name])
        if op.name == "index":
            found = [tensor for tensor in found if tensor.dtype is bool_]
        return found

    def resized(
        self,
        op: Op,
        arguments: tuple[Any, ...],
        deciding: list[Any],
        result: Any,
        value_of: Callable[[Any], Value],
    ) -> Any:
        """Return the result of a call with the size that it is to have."""
        dims = self._dims(op, arguments, {id(tensor) for tensor in deciding})
        sizes = {
            tensor.shape[dim]
            for tensor, own in zip(tensors_in(result), dims, strict=True)
            for dim in own
        }
        if len(sizes) > 1:
            raise ValueError("several sizes depend on data")
        is_fixed = not sizes
        present = sizes.pop() if sizes else int(any([tensor.numel() for tensor in deciding]))
        number = self._number(op, arguments, deciding, present, value_of)
        if number >= len(self.names):
            return result
        name = self.names[number]
        if is_fixed:
            self.fixed[name] = present
            return result
        size = self.sizes.get(name, present)
        each = iter(dims)

        def changed(tensor: Any) -> Any:
            own = next(each)
            if own or not op.name.startswith("unique"):
                return resized(tensor, dict.fromkeys(own, size))
            return ops.remainder(tensor, max(size, 1))  # places among what is unique

        return map_leaves(result, changed)

    def _dims(self, op: Op, arguments: tuple[Any, ...], deciding: set[int]) -> list[list[int]]:
        """Return for each result which of its dimensions differ with the data."""

        def shapes(data: Callable[[Any], Any]) -> list[Any]:
            other = map_leaves(arguments, lambda t: data(t) if id(t) in deciding else t)
            return [tensor.shape for tensor in tensors_in(call(op, other))]

        few = shapes(ops.zeros_like)
        many = shapes(_all_different if op.name.startswith("unique") else ops.ones_like)
        return [
            [dim for dim, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
            for one, other in zip(few, many, strict=True)
        ]

    def _number(
        self,
        op: Op,
        arguments: tuple[Any, ...],
        deciding: list[Any],
        size: int,
        value_of: Callable[[Any], Value],
    ) -> int:
        """Return the number of a size: places that one mask leaves are as many wherever it is used."""
        key: Any = len(self._numbers)
        if op.name in COUNTING and len(deciding) == 1:
            whole = op.name != "masked_select" or arguments[0].shape == deciding[0].shape
            key = (value_of(deciding[0]), None if whole else arguments[0].shape)
        if key not in self._numbers:
            self._numbers[key] = len(self.found)
            self.found.append(size)
        return self._numbers[key]


def _all_different(tensor: Any) -> Any:
    count = ops.arange(tensor.numel(), device=tensor.device)
    return ops.cast(ops.reshape(count, tensor.shape), tensor.dtype)


def resized(tensor: Any, sizes: Mapping[int, int]) -> Any:
    """Return a tensor cut off, or repeated, to sizes of some dimensions; zeros where it has no elements."""
    for dim, size in sizes.items():
        present = tensor.shape[dim]
        if not present:
            shape = list(tensor.shape)
            shape[dim] = size
            tensor = ops.zeros(shape, dtype=tensor.dtype, device=tensor.device)
        elif size != present:
            places = ops.remainder(ops.arange(size, device=tensor.device), present)
            tensor = ops.index_select(tensor, dim, places)
    return tensor


def evaluate(
    graph: Graph,
    inputs: list[Any],
    sizes: Mapping[str, int],
    check: Callable[[str, int], None],
) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return the result of a graph with sizes that depend on data, and what has to be written where.

    Raises
    ------
    ValueError
        If a size is not what follows from others; or what `check` raises of one that comes up.
    """
    known = dict(sizes)
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        now = Node(node.op, bound(node.args, known), updates=node.updates, records=node.records)
        now.outputs = node.outputs
        run_node(now, values)
        for value in node.outputs:
            for wanted, size in zip(value.shape, values[value]._shape, strict=True):
                if type(wanted) is not Size:
                    continue
                name = wanted.name
                if name and name not in known:
                    check(name, size)
                    known[name] = size
                elif wanted.at(known) != size:
                    raise ValueError(
                        f"a size of {value.name} is {size}, and {wanted} was to be {wanted.at(known)}"
                    )
    written = [(values[old], values[new]) for old, new in graph.writes]
    return bound(map_values(graph.result, values.__getitem__), known), written
