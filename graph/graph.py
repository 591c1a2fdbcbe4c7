"""Graphs: programs as lists of calls of ops, each of whose results is assigned once.

A :class:`Graph` has inputs, nodes in the order in which they run, and results. A :class:`Node` is a call of
an op that the dispatcher knows, with the arguments of its declaration, defaults filled in; a :class:`Value`
is a tensor: an input or what a node returns. Nothing in a graph writes into memory: an op that updates
arguments returns them anew, and what the program changes outside is listed in :attr:`Graph.writes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tensorplug.autograd.grad_mode import no_grad
from tensorplug.core.dispatch.op import Op

from .nodes import (
    Kind,
    Node,
    Value,
    infer,
    known_op,
    map_leaves,
    map_values,
    run_node,
    shown,
    values_in,
)

__all__ = ["Graph", "Node", "Value"]


class Graph:
    """A program of calls of ops.

    Attributes
    ----------
    inputs : list of Value
        What goes in: the program's arguments, in order, and state.
    nodes : list of Node
        The calls, in order.
    result : object
        What the program returns: values and plain objects in any nesting of tuples, lists and dicts.
    writes : list of (Value, Value)
        Which inputs the program changed in place, and to what.
    state : dict
        The tensors of parameters, buffers and constants, by name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.graph import capture
    >>> graph = capture(lambda x, y: (x + y).relu(), tp.ones(2), tp.ones(2))
    >>> print(graph)
    graph(%x: float32[2], %y: float32[2]):
      %add: float32[2] = add(%x, %y)
      %relu: float32[2] = relu(%add)
      return %relu
    >>> graph(tp.tensor([1.0, -3.0]), tp.ones(2))
    tensor([2., 0.])
    """

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.result: Any = None
        self.writes: list[tuple[Value, Value]] = []
        self.state: dict[str, Any] = {}
        self._names: set[str] = set()
        # Of names that were wanted several times the number of the last one.
        self._numbers: dict[str, int] = {}

    # --- looking ---

    @property
    def arguments(self) -> list[Value]:
        """The inputs that are arguments of the program."""
        return [value for value in self.inputs if value.kind == "input"]

    def outputs(self) -> list[Value]:
        """Return the values that outlast the run: those in the result, and those written back."""
        return [*values_in(self.result), *[new for _, new in self.writes]]

    def places(self) -> dict[Value, int]:
        """Return a number for each input, and from there on for each output that is none."""
        numbers = {value: number for number, value in enumerate(self.inputs)}
        for value in self.outputs():
            numbers.setdefault(value, len(numbers))
        return numbers

    def users(self) -> dict[Value, list[Node]]:
        """Return which nodes use each value; who uses it twice is there once."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.values()):
                found.setdefault(value, []).append(node)
        return found

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        given = ", ".join([f"%{value.name}: {value.type}" for value in self.arguments])
        lines = [f"graph({given}):"]
        lines += [f"  {v.kind} %{v.name}: {v.type}" for v in self.inputs if v.kind != "input"]
        lines += [f"  {node!r}" for node in self.nodes]
        lines += [f"  write %{old.name} <- %{new.name}" for old, new in self.writes]
        return "\n".join([*lines, f"  return {shown(self.result)}"])

    def table(self) -> str:
        """Return the nodes as a table: op, shapes, source line."""
        rows = [("value", "type", "op", "source")]
        rows += [
            (f"%{value.name}", value.type, node.op.name, node.source)
            for node in self.nodes
            for value in node.outputs
        ]
        widths = [max([len(row[column]) for row in rows]) for column in range(4)]
        return "\n".join(
            ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip()
             for row in rows]
        )  # fmt: skip

    def svg(self) -> str:
        """Return a picture of the graph as SVG, which notebooks show by themselves.

        Examples
        --------
        >>> import tensorplug as tp
        >>> from tensorplug.graph import capture
        >>> capture(tp.exp, tp.ones(2)).svg()[:40]
        '<svg xmlns="http://www.w3.org/2000/svg" '
        """
        from .drawing import svg  # seldom needed

        return svg(self)

    _repr_svg_ = svg

    def check(self) -> None:
        """Raise ValueError unless each value is made once, before it is used."""
        known = set(self.inputs)
        for node in self.nodes:
            for value in node.values():
                if value not in known:
                    raise ValueError(f"{value} is used before it is made, by: {node!r}")
            for value in node.outputs:
                if value in known or value.node is not node:
                    raise ValueError(f"{value} is made twice")
                known.add(value)
        for value in self.outputs():
            if value not in known:
                raise ValueError(f"{value} is returned, but nothing makes it")

    # --- making ---

    def name(self, wanted: str) -> str:
        """Return a name that no value has yet, and take it."""
        name, number = wanted, self._numbers.get(wanted, 0)
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._numbers[wanted] = number
        self._names.add(name)
        return name

    def add_input(
        self, name: str, tensor: Any, kind: Kind = "input", requires_grad: bool | None = None
    ) -> Value:
        """Add an input like a tensor; state keeps the tensor itself."""
        value = Value(
            self.name(name),
            tensor._shape,
            tensor._key.dtype,
            tensor._key.device,
            kind=kind,
            requires_grad=tensor.requires_grad if requires_grad is None else requires_grad,
        )
        self.inputs.append(value)
        if kind != "input":
            self.state[value.name] = tensor
        return value

    def add_output(self, node: Node, like: Any, name: str | None = None) -> Value:
        """Add an output like a tensor (or value) to a node."""
        shape, dtype, device = (
            (like.shape, like.dtype, like.device)
            if isinstance(like, Value)
            else (like._shape, like._key.dtype, like._key.device)
        )
        wanted = name or node.op.name.rpartition(".")[2]
        value = Value(self.name(wanted), shape, dtype, device, node=node)
        node.outputs.append(value)
        return value

    def call(
        self,
        op: str | Op | Callable[..., Any],
        *args: Any,
        before: Node | None = None,
        **kwargs: Any,
    ) -> Any:
        """Add a call of an op and return its value or values; shapes and dtypes come from the op's rule.

        Parameters
        ----------
        op : str, Op or callable
            The op, its name, or the public function.
        before : Node, optional
            Where to add the call; by default at the end.

        Examples
        --------
        >>> import tensorplug as tp
        >>> from tensorplug.graph import capture
        >>> graph = capture(lambda x: x + 1, tp.ones(2))
        >>> graph.result = graph.call("exp", graph.result)
        >>> graph(tp.zeros(2))
        tensor([2.7183, 2.7183])
        """
        op = known_op(op) if isinstance(op, str) else getattr(op, "op", op)
        assert isinstance(op, Op)
        node = Node(op, op.bind(args, kwargs))
        found = infer(op, node.args)
        given = [value.device for value in node.values()]
        device = given[0] if given else None

        def made(tensor: Any) -> Value:
            value = self.add_output(node, tensor)
            value.device = device or value.device
            return value

        node.result = map_leaves(found, made)
        position = len(self.nodes) if before is None else self.nodes.index(before)
        self.nodes.insert(position, node)
        return node.result

    # --- changing ---

    def replace(self, old: Value, new: Value) -> None:
        """Have whatever uses one value use another one."""
        self.replace_all({old: new})

    def replace_all(self, others: Mapping[Value, Value]) -> None:
        """Have whatever uses values use others: one pass over the graph, however many there are."""

        def other(value: Value) -> Value:
            return others.get(value, value)

        for node in self.nodes:
            if any([value in others for value in node.values()]):
                node.args = map_values(node.args, other)
        self.result = map_values(self.result, other)
        self.writes = [(target, other(value)) for target, value in self.writes]

    def erase(self, node: Node) -> None:
        """Take a node out.

        Raises
        ------
        ValueError
            If something uses what it makes.
        """
        made = set(node.outputs)
        used = {value for other in self.nodes for value in other.values()} | set(self.outputs())
        if made & used:
            raise ValueError(f"{(made & used).pop()} is used; replace it first")
        self.nodes.remove(node)

    def remove_unused(self, kept: Collection[Node] = ()) -> int:
        """Take out the nodes whose values nobody uses, and unused state; return how many nodes there were.

        What draws random numbers stays: the numbers after it would be others. So do the nodes in `kept`.
        """
        used = set(self.outputs())
        left: list[Node] = []
        for node in reversed(self.nodes):
            is_used = not used.isdisjoint(node.outputs) or not node.outputs or node in kept
            if node.op.random or is_used:
                left.append(node)
                used.update(node.values())
        removed = len(self.nodes) - len(left)
        self.nodes = left[::-1]
        targets = {target for target, _ in self.writes}
        for value in list(self.inputs):
            if value.kind != "input" and value not in used and value not in targets:
                self.inputs.remove(value)
                del self.state[value.name]
        return removed

    def copy(self) -> Graph:
        """Return a graph that can be changed by itself; state is shared."""
        made = Graph()
        made._names = set(self._names)
        made._numbers = dict(self._numbers)
        made.state = dict(self.state)
        known: dict[Value, Value] = {}

        def copied(value: Value) -> Value:
            return known[value]

        def again(value: Value, node: Node | None) -> Value:
            known[value] = Value(
                value.name, value.shape, value.dtype, value.device,
                node=node, kind=value.kind, requires_grad=value.requires_grad,
            )  # fmt: skip
            return known[value]

        made.inputs = [again(value, None) for value in self.inputs]
        for node in self.nodes:
            twin = Node(
                node.op, map_values(node.args, copied),
                updates=node.updates, records=node.records, source=node.source, part=node.part,
            )  # fmt: skip
            twin.outputs = [again(value, twin) for value in node.outputs]
            twin.result = map_values(node.result, copied)
            made.nodes.append(twin)
        made.result = map_values(self.result, copied)
        made.writes = [(copied(old), copied(new)) for old, new in self.writes]
        return made

    # --- running ---

    def __call__(self, *args: Any) -> Any:
        """Run the program: the ops it consists of are called as usual, and recorded for differentiation.

        Raises
        ------
        TypeError
            If the number of arguments is wrong.
        """
        given = self.arguments
        if len(args) != len(given):
            raise TypeError(f"the graph takes {len(given)} tensors, got {len(args)}")
        state = self.state
        rest = iter(args)
        tensors = [next(rest) if v.kind == "input" else state[v.name] for v in self.inputs]
        result, written = self.evaluate(tensors)
        if written:
            with no_grad():
                for target, new in written:
                    target.copy_(new)
        return result

    def evaluate(self, inputs: list[Any]) -> tuple[Any, list[tuple[Any, Any]]]:
        """Return the result for tensors in the place of all inputs, and what has to be written where."""
        values: dict[Value, Any] = dict(zip(self.inputs, inputs, strict=True))
        last = self._last_uses()
        for position, node in enumerate(self.nodes):
            run_node(node, values)
            for value in last.get(position, ()):
                del values[value]
        written = [(values[old], values[new]) for old, new in self.writes]
        return map_values(self.result, values.__getitem__), written

    def values(self, inputs: list[Any], wanted: list[Value]) -> list[Any]:
        """Return values for tensors in the place of all inputs."""
        found: dict[Value, Any] = dict(zip(self.inputs, inputs, strict=True))
        for node in self.nodes:
            run_node(node, found)
        return [found[value] for value in wanted]

    def _last_uses(self) -> dict[int, list[Value]]:
        """Return which values are no longer needed after the node at a position."""
        last: dict[Value, int] = {}
        for position, node in enumerate(self.nodes):
            for value in (*node.outputs, *node.values()):
                last[value] = position
        kept = {*self.outputs(), *self.inputs}
        found: dict[int, list[Value]] = {}
        for value, position in last.items():
            if value not in kept:
                found.setdefault(position, []).append(value)
        return found
