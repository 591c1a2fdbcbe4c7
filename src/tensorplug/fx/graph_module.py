"""Modules that run a graph."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from tensorplug import nn
from tensorplug.core import Tensor
from tensorplug.core.contexts import thread

from .graph import Graph
from .node import Node, map_arg
from .proxy import recorded


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Have a module share an attribute of another one, with empty modules on the way to it."""
    *prefix, field = target.split(".")
    for item in prefix:
        from_module = getattr(from_module, item)
        below = getattr(to_module, item, None)
        if below is from_module:
            return
        if below is None:
            below = nn.Module()
            setattr(to_module, item, below)
        to_module = below
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        persistent = field not in from_module._non_persistent_buffers_set
        to_module.register_buffer(field, value, persistent=persistent)
    else:
        setattr(to_module, field, value)


def _assign_attr(value: Any, to_module: Any, target: str) -> None:
    *prefix, field = target.split(".")
    for item in prefix:
        below = getattr(to_module, item, None)
        if below is None:
            below = nn.Module()
            setattr(to_module, item, below)
        to_module = below
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


class GraphModule(nn.Module):
    """A module whose ``forward`` runs a graph.

    Parameters
    ----------
    root : Module or dict
        Has the modules and attributes that the graph names; those are shared. Or a dictionary of them.
    graph : Graph
        What it runs.
    class_name : str
        What it calls itself.

    Attributes
    ----------
    meta : dict
        What passes note of it.
    """

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__dict__["_class_name"] = class_name
        self.meta: dict[str, Any] = {}
        if isinstance(root, nn.Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if isinstance(root, nn.Module):
                    _copy_attr(root, self, node.target)
                elif node.target in root:
                    _assign_attr(root[node.target], self, node.target)
                else:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in "
                        "root!"
                    )
        self.graph = graph

    def _get_name(self) -> str:
        return str(self.__dict__.get("_class_name", type(self).__name__))

    @property
    def graph(self) -> Graph:
        """What it runs."""
        found: Graph = self.__dict__["_graph"]
        return found

    @graph.setter
    def graph(self, g: Graph) -> None:
        if g.owning_module is not None and g.owning_module is not self:
            g = copy.deepcopy(g)
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The graph as the text of ``forward``."""
        return self.graph.python_code("self").src

    def recompile(self) -> Any:
        """Have the next call run the graph as it is now; return its text."""
        self.__dict__["_steps"] = None
        return self.graph.python_code("self")

    def signature(self, with_self: bool = False) -> inspect.Signature:
        """Return the signature of a call."""
        steps = _Steps(self.graph)
        if not with_self:
            return steps.signature
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [first, *steps.signature.parameters.values()]
        return inspect.Signature(parameters, __validate_parameters__=False)

    def print_readable(self, print_output: bool = True, **_: Any) -> str:
        """Return the text of the module, and print it."""
        text = f"class {self._get_name()}(tensorplug.nn.Module):" + self.code.replace(
            "\n", "\n    "
        )
        if print_output:
            print(text)
        return text

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        steps = self.__dict__["_steps"]
        if steps is None:
            steps = self.__dict__["_steps"] = _Steps(self.graph)
        return steps.run(self, args, kwargs)

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a module under a dotted name; return whether that was possible."""
        *prefix, field = target.split(".")
        module: Any = self
        for item in prefix:
            below = getattr(module, item, None)
            if below is None:
                below = nn.Module()
                setattr(module, item, below)
            if not isinstance(below, nn.Module):
                return False
            module = below
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove a module by its dotted name; return whether there was one."""
        prefix, _, field = target.rpartition(".")
        try:
            module = self.get_submodule(prefix)
        except AttributeError:
            return False
        if not isinstance(getattr(module, field, None), nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update([".".join(parts[:n]) for n in range(1, len(parts) + 1)])
                if node.op == "call_module":
                    inside = self.get_submodule(node.target)
                    used.update(
                        [f"{node.target}.{name}" for name, _ in inside.named_modules() if name]
                    )
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        nn.Module.__init__(made)
        for name, value in self.__dict__.items():
            if name not in ("_graph", "_steps"):
                made.__dict__[name] = copy.deepcopy(value, memo)
        made.__dict__["_graph"] = copy.deepcopy(self.graph, memo)
        made.graph.owning_module = made
        made.__dict__["_steps"] = None
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_steps": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.graph.owning_module = self

    def __str__(self) -> str:
        return f"{super().__repr__()}\n{self.code}"


class _Steps:
    """A graph made ready to run."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph.nodes)
        self.codegen = graph._codegen
        inputs = [node for node in self.nodes if node.op == "placeholder"]
        kinds = inspect.Parameter
        found = []
        keywords = False
        for node in inputs:
            name = node.target.lstrip("*")
            stars = node.target.count("*")
            kind: Any = kinds.VAR_KEYWORD if stars == 2 else kinds.VAR_POSITIONAL if stars else None
            default = node.args[0] if node.args and not stars else kinds.empty
            keywords = keywords or stars == 1
            if kind is None:
                kind = kinds.KEYWORD_ONLY if keywords else kinds.POSITIONAL_OR_KEYWORD
            found.append(kinds(name, kind, default=default))
        self.signature = inspect.Signature(found, __validate_parameters__=False)
        last: dict[Node, int] = {}
        for position, node in enumerate(self.nodes):
            for used in node.all_input_nodes:
                last[used] = position
        self.done: list[list[Node]] = [[] for _ in self.nodes]
        for node, position in last.items():
            self.done[position].append(node)

    def run(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = tuple(self.codegen.process_inputs(*args)) if args else args
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = iter(bound.arguments.values())
        values: dict[Node, Any] = {}

        def load(value: Any) -> Any:
            return map_arg(value, values.__getitem__)

        for node, done in zip(self.nodes, self.done, strict=True):
            if node.op == "placeholder":
                values[node] = next(given)
                continue
            if node.op == "output":
                return self.codegen.process_outputs(load(node.args[0]))
            if node.op == "get_attr":
                values[node] = reached(module, node.target)
                continue
            positional, named = load(node.args), load(node.kwargs)
            if node.op == "call_function":
                function = recorded(node.target) if thread.tracing else node.target
                values[node] = function(*positional, **named)
            elif node.op == "call_method":
                values[node] = getattr(positional[0], node.target)(*positional[1:], **named)
            else:
                values[node] = reached(module, node.target)(*positional, **named)
            del positional, named
            for used in done:
                del values[used]
        return None


def reached(module: Any, target: str) -> Any:
    """Return an attribute by its dotted name.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    value = module
    for part in target.split("."):
        if not hasattr(value, part):
            raise RuntimeError(f"Node referenced nonexistent target {target}")
        value = getattr(value, part)
    return value
