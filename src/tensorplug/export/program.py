"""Exported programs: a graph with its state, and what its calls get and return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tensorplug.autograd.transforms.pytree import tree_flatten, tree_unflatten
from tensorplug.core import Tensor
from tensorplug.graph import Graph
from tensorplug.graph.data_sizes import evaluate
from tensorplug.graph.nodes import values_in
from tensorplug.graph.symbolic import Size, at
from tensorplug.nn import Module

from .dims import Dim


class Signature(NamedTuple):
    """What goes into a program, and what comes out."""

    inputs: list[str]
    parameters: list[str]
    buffers: list[str]
    constants: list[str]
    outputs: list[str]
    written: list[str]


class ExportedProgram:
    """A program as a graph with its state; :func:`export` makes it.

    Attributes
    ----------
    graph : tensorplug.graph.Graph
        The calls. Sizes that may differ are expressions in the names of their ``Dim``.
    dims : dict
        The sizes that may differ, by name; those that depend on data are ``u0``, ``u1`` ….

    Examples
    --------
    >>> import tensorplug as tp
    >>> module = tp.nn.Linear(2, 1)
    >>> batch = tp.export.Dim("batch")
    >>> program = tp.export.export(module, (tp.ones(3, 2),), dynamic_shapes=({0: batch},))
    >>> print(program.graph)
    graph(%input: float32[batch, 2]):
      parameter %weight: float32[1, 2]
      parameter %bias: float32[1]
      %linear: float32[batch, 1] = linear(%input, %weight, %bias)
      return [%linear]
    >>> x = tp.randn(7, 2)
    >>> tp.equal(program.module()(x), module(x))
    True
    """

    def __init__(self, graph: Graph, dims: dict[str, Dim], inputs: Any, outputs: Any) -> None:
        self.graph = graph
        self.dims = dims
        # The arguments, positional and by name, with Leaf in the place of tensors; the results with their
        # numbers.
        self._inputs = inputs
        self._outputs = outputs

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and buffers."""
        kinds = {value.name: value.kind for value in self.graph.inputs}
        return {n: t for n, t in self.graph.state.items() if kinds[n] != "constant"}

    @property
    def signature(self) -> Signature:
        """The names of what goes in and comes out."""

        def of(kind: str) -> list[str]:
            return [value.name for value in self.graph.inputs if value.kind == kind]

        return Signature(
            of("input"), of("parameter"), of("buffer"), of("constant"),
            [value.name for value in values_in(self.graph.result)],
            [target.name for target, _ in self.graph.writes],
        )  # fmt: skip

    def module(self) -> Module:
        """Return a module that runs the program, with the same state; it trains, and compiles."""
        return _ProgramModule(self)

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """Return the program: the ops of its graph are those that kernels and derivatives are for."""
        return self

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, int]]:
        """Return the tensors among a call's arguments, and the sizes that may differ.

        Raises
        ------
        TypeError, ValueError
            If the arguments are not those that the program was exported for.
        """
        found: list[Any] = []
        _collect(self._inputs, (args, dict(sorted(kwargs.items()))), "the arguments", found)
        sizes: dict[str, int] = {}
        for value, tensor in zip(self.graph.arguments, found, strict=True):
            if tensor.dtype is not value.dtype or tensor.ndim != len(value.shape):
                raise ValueError(
                    f"{value.name} is {value.type}, got {tensor.dtype} {list(tensor.shape)}"
                )
            for wanted, size in zip(value.shape, tensor.shape, strict=True):
                expected = wanted
                if type(wanted) is Size:
                    (name,) = next(iter(wanted.terms))
                    expected = sizes.setdefault(name, size)
                if expected != size:
                    raise ValueError(
                        f"{value.name} is {value.type}, got sizes {list(tensor.shape)}"
                    )
        for name, size in sizes.items():
            self.check_size(name, size)
        return found, sizes

    def check_size(self, name: str, size: int) -> None:
        """Raise ValueError if a size that may differ has none of the values that it may have."""
        dim = self.dims[name]
        if size < dim.min or (dim.max is not None and size > dim.max):
            raise ValueError(f"{dim} does not take {size}")


class Leaf:
    """Stands for a tensor among arguments."""


class _ProgramModule(Module):
    """Runs an exported program."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.__dict__["_program"] = program
        self.__dict__["_graphs"] = {}
        for value in program.graph.inputs:
            if value.kind == "input":
                continue
            *path, name = value.name.split(".")
            owner: Module = self
            for part in path:
                if part not in owner._modules:
                    owner.add_module(part, Module())
                owner = owner._modules[part]  # type: ignore[assignment]
            tensor = program.graph.state[value.name]
            if value.kind == "parameter":
                owner.register_parameter(name, tensor)
            else:
                owner.register_buffer(name, tensor, persistent=value.kind == "buffer")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        program: ExportedProgram = self.__dict__["_program"]
        tensors, sizes = program.bind(args, kwargs)
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        given = iter(tensors)
        inputs = [next(given) if v.kind == "input" else state[v.name] for v in program.graph.inputs]
        if len(sizes) < len(program.dims):
            leaves, written = evaluate(program.graph, inputs, sizes, program.check_size)
        else:
            leaves, written = self._graph(sizes).evaluate(inputs)
        for target, new in written:
            target.copy_(new)
        return _filled(program._outputs, leaves)

    def _graph(self, sizes: dict[str, int]) -> Graph:
        """Return the graph for sizes of the arguments, which are all."""
        program: ExportedProgram = self.__dict__["_program"]
        graphs: dict[Any, Graph] = self.__dict__["_graphs"]
        key = tuple(sizes.items())
        graph = graphs.get(key)
        if graph is None:
            if len(graphs) > 64:
                graphs.clear()
            graph = graphs[key] = at(program.graph, sizes) if sizes else program.graph
        return graph


def _collect(wanted: Any, given: Any, where: str, found: list[Any]) -> None:
    """Collect the tensors among arguments of a structure."""
    if isinstance(wanted, Leaf):
        if not isinstance(given, Tensor):
            raise TypeError(f"{where}: expected a Tensor, got {type(given).__name__}")
        found.append(given)
    elif isinstance(wanted, (tuple, list)):
        if not isinstance(given, (tuple, list)) or len(given) != len(wanted):
            raise TypeError(f"{where}: expected {len(wanted)} values, got {given!r}")
        for number, (item, other) in enumerate(zip(wanted, given, strict=True)):
            _collect(item, other, f"{where}[{number}]", found)
    elif isinstance(wanted, Mapping):
        if not isinstance(given, Mapping) or given.keys() != wanted.keys():
            raise TypeError(f"{where}: expected {list(wanted)}, got {given!r}")
        for key, item in wanted.items():
            _collect(item, given[key], f"{where}[{key!r}]", found)
    elif wanted != given or type(wanted) is not type(given):
        raise ValueError(f"{where}: the program was exported for {wanted!r}, got {given!r}")


def _filled(outputs: Any, leaves: list[Any]) -> Any:
    numbers, tree = tree_flatten(outputs)
    return tree_unflatten([leaves[number] for number in numbers], tree)
