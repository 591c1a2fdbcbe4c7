"""Graphs: lists of calls, and their text."""

from __future__ import annotations

import builtins
import copy
import keyword
import re
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.errors import warn

from .node import Node, map_aggregate, map_arg

#: How functions of :mod:`operator` are written.
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}",
}  # fmt: skip


class _Names:
    """The names that are taken."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = defaultdict(int)

    def create(self, candidate: str) -> str:
        """Return a name like `candidate` that is free, as torch makes them."""
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (candidate, 0) if found is None else (found[1], int(found[2]))
        if not number:
            number = self.counts[base]
        while candidate in self.used or self._illegal(candidate):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        self.counts[base] = number
        return candidate

    @staticmethod
    def _illegal(name: str) -> bool:
        return (
            keyword.iskeyword(name)
            or name in builtins.__dict__
            or name
            in ("inf", "nan", "NoneType", "torch", "tensorplug", "device", "fx_pytree", "pytree")
        )


def _snake_case(name: str) -> str:
    name = re.sub(r"(?<!^)(?<=[a-z0-9])([A-Z])", r"_\1", name)
    return name.lower()


def qualified_name(function: Any) -> str:
    """Return a function as code names it."""
    name = getattr(function, "__name__", None)
    if name is None:
        return str(function)
    if getattr(builtins, name, None) is function:
        return str(name)
    facade: Any = sys.modules["tensorplug"]
    if vars(facade).get(name) is function:
        return f"tensorplug.{name}"
    if getattr(facade.Tensor, name, None) is function:
        return f"tensorplug.Tensor.{name}"
    functional = sys.modules.get("tensorplug.nn.functional")
    if functional is not None and getattr(functional, name, None) is function:
        return f"tensorplug.nn.functional.{name}"
    module = getattr(function, "__module__", None) or ""
    if module == "_operator":
        module = "operator"
    return f"{module}.{name}" if module else str(name)


@dataclass(slots=True)
class PythonCode:
    """The text of a graph.

    Attributes
    ----------
    src : str
        The text of a function ``forward``.
    globals : dict
        What it names that is no argument.
    """

    src: str
    globals: dict[str, Any]


class CodeGen:
    """How a graph's arguments and results are handed in and out; a subclass may change it."""

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders from a call's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what a call returns from the value of the output node."""
        return outputs


class _NodeList:
    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return sum([1 for _ in self])

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node: Node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_NodeList(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _InsertPoint:
    """Where nodes are added from now on, or until a ``with`` block ends."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph = graph
        self._before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self._graph._insert = self._before


class Graph:
    """A program as a list of calls, in the order in which they are made.

    Attributes
    ----------
    owning_module : Module or None
        Whose modules and attributes the nodes name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> graph = tp.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(tp.relu, (x,)))
    >>> tp.fx.GraphModule(tp.nn.Module(), graph)(tp.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names = _Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _NodeList:
        """The calls, in order."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of a kind, and of a target where one is given."""
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set how arguments and results are handed in and out."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders from a call's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what a call returns from the value of the output node."""
        return self._codegen.process_outputs(out)

    # --- making nodes ---

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the place of insertion, and return it."""
        assert op in (
            "call_function", "call_method", "get_attr", "call_module", "placeholder", "output"
        ), op  # fmt: skip
        candidate = name if name is not None else self._target_name(target)
        node = Node(
            self, self._names.create(candidate), op, target, args or (), kwargs or {}, type_expr
        )
        self._insert(node)
        return node

    @staticmethod
    def _target_name(target: Any) -> str:
        if isinstance(target, str):
            name = target.rpartition("*")[2]
        else:
            name = getattr(target, "__name__", type(target).__name__)
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add an attribute of the owning module."""
        self._check_target("get_attr", qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _check_target(self, kind: str, target: str) -> None:
        """Warn if the owning module lacks what a node is to name."""
        value = self.owning_module
        for part in target.split("."):
            if value is not None:
                value = getattr(value, part, None)
        if value is None and self.owning_module is not None:
            warn(
                f"Attempted to insert a {kind} Node with no underlying reference in the owning GraphModule! "
                f"Call GraphModule.add_submodule to add the necessary submodule, or setattr to add {target}",
                UserWarning,
            )

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a sub-module of the owning module."""
        self._check_target("call_module", module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the return."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """Return the return."""
        return next(reversed(self.nodes))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Add nodes before a node, by default at the beginning: within a ``with`` block, or from now on."""
        return _InsertPoint(self, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Add each node right after a node, by default at the end, as long as :meth:`inserting_before`."""
        return _InsertPoint(self, self._root.prepend if n is None else n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out.

        Raises
        ------
        RuntimeError
            If its value is used.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the calls whose results nobody uses; return whether there were any."""
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    # --- copies ---

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; a function says which nodes here its arguments are."""
        made = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, arg_transform),
            map_arg(node.kwargs, arg_transform),
            node.name,
            node.type,
        )
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of a graph but its output; return the output's value here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        val_map: dict[Node, Node] = {}
        output = made.graph_copy(self, val_map, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if output is not None:
            value, old = output
            node = made.create_node("output", "output", (value,), {}, type_expr=old.type)
            node.meta = copy.copy(old.meta)
        return made

    def __reduce__(self) -> Any:
        numbers = {node: number for number, node in enumerate(self.nodes)}

        def packed(value: Any) -> Any:
            return map_arg(value, lambda node: _Reference(numbers[node]))

        steps = [
            (node.op, packable(node.target), packed(node.args), packed(node.kwargs), node.name)
            for node in self.nodes
        ]
        return _restored, (steps, self._tracer_cls)

    # --- text ---

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """Return the graph as the text of a function ``forward``."""
        names: dict[str, Any] = {}
        lines: list[str] = []
        arguments: list[str] = []
        last_use: dict[Node, Node] = {}
        for node in self.nodes:
            for used in node.all_input_nodes:
                last_use[used] = node
        done: dict[Node, list[Node]] = defaultdict(list)
        for used, user in last_use.items():
            done[user].append(used)

        def shown(value: Any) -> str:
            if isinstance(value, Node):
                return value.name
            if isinstance(value, tuple) and not hasattr(value, "_fields"):
                inside = ", ".join(map(shown, value))
                return f"({inside},)" if len(value) == 1 else f"({inside})"
            if isinstance(value, list):
                return f"[{', '.join(map(shown, value))}]"
            if isinstance(value, dict):
                return (
                    "{"
                    + ", ".join([f"{key!r}: {shown(item)}" for key, item in value.items()])
                    + "}"
                )
            if isinstance(value, slice):
                return f"slice({shown(value.start)}, {shown(value.stop)}, {shown(value.step)})"
            if isinstance(value, (DType, Device)):
                names["tensorplug"] = sys.modules["tensorplug"]
                return repr(value) if isinstance(value, DType) else f"tensorplug.{value!r}"
            if callable(value) and hasattr(value, "__name__"):
                return named(value)
            if isinstance(value, float) and value - value != 0:
                names["inf"], names["nan"] = float("inf"), float("nan")
            return repr(value)

        def named(function: Any) -> str:
            text = qualified_name(function)
            first = text.partition(".")[0]
            if "." in text and first in sys.modules and _reached(text) is function:
                names[first] = sys.modules[first]
                return text
            if "." not in text:
                return text
            short = re.sub(r"\W", "_", text)
            names[short] = function
            return short

        def called(node: Node) -> str:
            return ", ".join(
                [
                    *map(shown, node.args),
                    *[f"{name} = {shown(v)}" for name, v in node.kwargs.items()],
                ]
            )

        for node in self.nodes:
            if node.op == "placeholder":
                stars = node.target[: node.target.count("*")]
                default = f"={shown(node.args[0])}" if node.args else ""
                arguments.append(f"{stars}{node.target.lstrip('*')}{default}")
                if node.target.lstrip("*") != node.name:
                    lines.append(f"{node.name} = {node.target.lstrip('*')}")
                continue
            if node.op == "output":
                lines.append(f"return {shown(node.args[0])}")
                continue
            if node.op == "get_attr":
                value = _attribute(root_module, node.target)
            elif node.op == "call_module":
                value = f"{_attribute(root_module, node.target)}({called(node)})"
            elif node.op == "call_method":
                rest = ", ".join(
                    [
                        *map(shown, node.args[1:]),
                        *[f"{k} = {shown(v)}" for k, v in node.kwargs.items()],
                    ]
                )
                value = f"{shown(node.args[0])}.{node.target}({rest})"
            else:
                value = self._function_call(node, shown, named, called)
            free = " = ".join([used.name for used in reversed(done[node])])
            unused = not node.users
            lines.append(
                f"{node.name} = {value}"
                + (f";  {free} = {node.name} = None" if free and unused else "")
                + (f";  {free} = None" if free and not unused else "")
                + (f";  {node.name} = None" if unused and not free else "")
            )
        if not lines:
            lines.append("pass")
        body = "\n".join([f"    {line}" for line in lines])
        head = ", ".join([root_module.split(".", maxsplit=1)[0], *arguments])
        return PythonCode(f"\n\n\ndef forward({head}):\n{body}\n    ", names)

    @staticmethod
    def _function_call(
        node: Node, shown: Callable[[Any], str], named: Callable[[Any], str], called: Any
    ) -> str:
        module = getattr(node.target, "__module__", None)
        name = getattr(node.target, "__name__", "")
        if module == "_operator" and name in MAGIC and not node.kwargs:
            return MAGIC[name].format(*map(shown, node.args))
        if node.target is getattr and isinstance(node.args[1], str) and len(node.args) == 2:
            return f"{shown(node.args[0])}.{node.args[1]}"
        return f"{named(node.target)}({called(node)})"

    def __str__(self) -> str:
        lines = [f"    {text}" for node in self.nodes if (text := node.format_node()) is not None]
        return "\n".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [
            (node.op, node.name, str(node.target), str(node.args), str(node.kwargs))
            for node in self.nodes
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, tuple(["-" * width for width in widths]), *rows):
            print(
                "  ".join(
                    [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                ).rstrip()
            )

    def lint(self) -> None:
        """Raise RuntimeError if the graph is not in order."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                value = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute {part}"
                        )
                    value = getattr(value, part)


def _reached(text: str) -> Any:
    first, *rest = text.split(".")
    value: Any = sys.modules.get(first)
    for part in rest:
        value = getattr(value, part, None)
    return value


def _attribute(root: str, target: str) -> str:
    text = root
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


@dataclass(slots=True)
class _Reference:
    """Stands for a node in a pickle."""

    number: int


@dataclass(slots=True)
class _ByName:
    """A function that pickle does not find under its own name."""

    name: str


def packable(target: Any) -> Any:
    """Return a target as a pickle holds it."""
    if isinstance(target, types.FunctionType) or type(target).__name__.startswith("cython"):
        text = qualified_name(target)
        if _reached(text) is target:
            return _ByName(text)
    return target


def _restored(steps: list[Any], tracer_cls: Any) -> Graph:
    graph = Graph(tracer_cls=tracer_cls)
    nodes: list[Node] = []

    def unpacked(value: Any) -> Any:
        return map_aggregate(value, lambda v: nodes[v.number] if isinstance(v, _Reference) else v)

    import importlib

    for op, target, args, kwargs, name in steps:
        if isinstance(target, _ByName):
            importlib.import_module("tensorplug.nn.functional")
            target = _reached(target.name)
        nodes.append(graph.create_node(op, target, unpacked(args), unpacked(kwargs), name))
    return graph
