"""Running a graph node by node, to do something else with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .graph import Graph
from .graph_module import GraphModule, reached
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy
from .tracer import Tracer


class Interpreter:
    """Runs a graph; a subclass may change what a kind of node does.

    Parameters
    ----------
    module : Module
        Has what the graph names.
    garbage_collect_values : bool
        Whether values are dropped after their last use.
    graph : Graph, optional
        By default the module's own.

    Examples
    --------
    >>> import tensorplug as tp
    >>> class Names(Interpreter):
    ...     def run_node(self, n):
    ...         print(n.name)
    ...         return super().run_node(n)
    >>> Names(tp.fx.symbolic_trace(lambda x: x.exp() + 1)).run(tp.zeros(1))
    x
    exp
    add
    output
    tensor([2.])
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph with arguments."""
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        last = {used: node for node in self.graph.nodes for used in node.all_input_nodes}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if self.garbage_collect_values:
                for used in node.all_input_nodes:
                    if last[used] is node:
                        self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with a list of arguments, which is emptied."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Return the value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        first, *rest = args
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a sub-module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module by its dotted name."""
        return reached(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return arguments with values in place of nodes."""
        return map_arg(args, self.env.__getitem__)


class Transformer(Interpreter):
    """Runs a graph on proxies, to make another graph of it; a subclass may change what nodes do."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        outer = self

        class TransformerTracer(Tracer):
            def __init__(self) -> None:
                super().__init__()
                self.graph = outer.new_graph
                self.root = module

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer()

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add an argument."""
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of a module."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of a method."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the module with the new graph."""
        result = self._run()
        if result is not None:
            self.new_graph.output(
                map_aggregate(
                    result, lambda value: value.node if isinstance(value, Proxy) else value
                )
            )
        return GraphModule(self.module, self.new_graph)

    def _run(self) -> Any:
        self.env = {}
        for node in self.graph.nodes:
            value = self.run_node(node)
            if node.op == "output":
                return value
            self.env[node] = value
            if isinstance(value, Proxy):
                value.node.meta.update(node.meta)
                if value.node.stack_trace is None:
                    value.node.stack_trace = node.stack_trace
        return None
