"""Programs in files: a module's graph with its state, run again without the module's code.

:func:`export` captures what a module does; :func:`save` writes it as a zip of JSON and safetensors, in which
there is no code, and :func:`load` reads that.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, BinaryIO, Final, NamedTuple

from tensorplug.autograd import no_grad
from tensorplug.autograd.transforms.pytree import tree_flatten, tree_leaves, tree_unflatten
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, dtype_named
from tensorplug.core.ops.creation.creation import zeros
from tensorplug.core.tensor import layout as layouts
from tensorplug.graph import Graph, Node, Uncapturable, Value
from tensorplug.graph.capture import Recorder, settled
from tensorplug.graph.nodes import known_op, values_in
from tensorplug.graph.symbolic import Size, at, generalize, same
from tensorplug.nn import Module, Parameter

from . import safetensors
from .random import get_rng_state, set_rng_state

__all__ = ["Dim", "ExportedProgram", "export", "load", "save"]

#: The version of the format; a file of a later one is refused.
FORMAT = 1
_PLAIN = (int, float, complex, bool, str, type(None), DType, Device)


class DimHint(enum.Enum):
    """What may become of a size that has no :class:`Dim`."""

    AUTO = "may differ, if the program allows it"
    DYNAMIC = "has to be one that may differ"
    STATIC = "stays as it is"


class Dim:
    """A size that may differ from run to run.

    Parameters
    ----------
    name : str
        What it is called. Sizes of one name are equal.
    min, max : int, optional
        Between which it lies.

    Attributes
    ----------
    AUTO, DYNAMIC, STATIC : DimHint
        In place of a ``Dim``: whether the size may differ is found out; it has to be one that may; it stays.
        Such sizes are equal where the program needs them to be, and were so.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.export.Dim("batch", min=1, max=64)
    Dim('batch', min=1, max=64)
    """

    AUTO: Final = DimHint.AUTO
    DYNAMIC: Final = DimHint.DYNAMIC
    STATIC: Final = DimHint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise ValueError(f"Dim(): a name is an identifier, got {name!r}")
        self.name, self.min, self.max = name, 0 if min is None else min, max

    def __repr__(self) -> str:
        bounds = f", min={self.min}" if self.min else ""
        return f"Dim({self.name!r}{bounds}{'' if self.max is None else f', max={self.max}'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.name)


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
        The sizes that may differ, by name.

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
        # The arguments, positional and by name, with _Leaf in the place of tensors; the results with their
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
            dim = self.dims[name]
            if size < dim.min or (dim.max is not None and size > dim.max):
                raise ValueError(f"{dim} does not take {size}")
        return found, sizes


class _Leaf:
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
        graphs: dict[Any, Graph] = self.__dict__["_graphs"]
        key = tuple(sizes.items())
        graph = graphs.get(key)
        if graph is None:
            if len(graphs) > 64:
                graphs.clear()
            graph = graphs[key] = at(program.graph, sizes) if sizes else program.graph
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        given = iter(tensors)
        inputs = [next(given) if v.kind == "input" else state[v.name] for v in graph.inputs]
        leaves, written = graph.evaluate(inputs)
        for target, new in written:
            target.copy_(new)
        return _filled(program._outputs, leaves)


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> ExportedProgram:
    """Return what a module does with arguments like these as a program.

    Parameters
    ----------
    mod : Module
        It runs with the arguments, and once for each combination of two sizes of each ``Dim``; its state
        and the random numbers to come are as before.
    args, kwargs
        Tensors in any nesting of tuples, lists and dicts, and plain values, which the program holds for.
    dynamic_shapes : tuple or dict, optional
        For each argument, or by name: ``{dim: Dim}``, or a ``Dim``, ``Dim.AUTO`` or None for each dimension.
    strict : bool
        Accepted as torch has it.

    Raises
    ------
    Uncapturable
        If what the module does depends on its arguments' data.
    ValueError
        If it does something else for other sizes.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> program = tp.export.export(tp.nn.ReLU(), (tp.ones(2),))
    >>> file = io.BytesIO()
    >>> tp.export.save(program, file)
    >>> tp.export.load(file).module()(tp.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    kwargs = dict(sorted((kwargs or {}).items()))
    hints = {hint for hint in tree_leaves(dynamic_shapes) if isinstance(hint, DimHint)}
    # Sizes with hints are first taken to be independent, then equal where they were, then to stay.
    tries: list[str | None] = ["s{place}_{number}", "s{size}"] if hints - {Dim.STATIC} else [None]
    if Dim.AUTO in hints:
        tries.append(None)
    for name in tries[:-1]:
        try:
            return _exported(mod, args, kwargs, _dynamic(mod, args, kwargs, dynamic_shapes, name))
        except (ValueError, RuntimeError):
            pass
    return _exported(mod, args, kwargs, _dynamic(mod, args, kwargs, dynamic_shapes, tries[-1]))


def _exported(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: dict[int, dict[int, Dim]]
) -> ExportedProgram:
    leaves, tree = tree_flatten((tuple(args), kwargs))
    dims: dict[str, Dim] = {}
    sizes: dict[str, int] = {}
    for tensor in [leaf for leaf in leaves if isinstance(leaf, Tensor)]:
        for number, dim in shapes.get(id(tensor), {}).items():
            dims.setdefault(dim.name, dim)
            if sizes.setdefault(dim.name, tensor.shape[number]) != tensor.shape[number]:
                raise ValueError(f"export(): {dim} is {sizes[dim.name]} and {tensor.shape[number]}")
    others = {
        name: _other(dims[name], size, number) for number, (name, size) in enumerate(sizes.items())
    }

    def captured(setting: Mapping[str, int]) -> tuple[Graph, Any]:
        def resized(leaf: Any) -> Any:
            found = shapes.get(id(leaf), {})
            if all([setting[dim.name] == leaf.shape[number] for number, dim in found.items()]):
                return leaf
            shape = list(leaf.shape)
            for number, dim in found.items():
                shape[number] = setting[dim.name]
            return zeros(shape, dtype=leaf.dtype, device=leaf.device)

        given = [resized(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        return _captured(mod, *tree_unflatten(given, tree))

    settings = [
        dict(zip(sizes, chosen, strict=True))
        for chosen in itertools.product(*[(size, others[name]) for name, size in sizes.items()])
    ]
    graphs = [captured(setting) for setting in settings]
    graph = generalize([(s, g) for s, (g, _) in zip(settings, graphs, strict=True)])
    beyond = {
        name: _other(dims[name], size, number + 5)
        for number, (name, size) in enumerate(sizes.items())
    }
    if graph is None or (sizes and not same(at(graph, beyond), captured(beyond)[0])):
        raise ValueError(
            f"export(): the module does something else for other sizes of {', '.join(sizes)}; leave those "
            "out of dynamic_shapes, or write the program so that sizes decide nothing"
        )
    inputs = tree_unflatten(
        [_Leaf() if isinstance(leaf, Tensor) else leaf for leaf in leaves], tree
    )
    return ExportedProgram(graph, dims, inputs, graphs[0][1])


def _other(dim: Dim, size: int, number: int) -> int:
    """Return another size that a dimension may have."""
    for step in (number + 1, -(number + 1), 1, -1):
        other = size + step
        if other >= max(dim.min, 1) and (dim.max is None or other <= dim.max):
            return other
    raise ValueError(f"export(): {dim} leaves no other size than {size}")


def _captured(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Graph, Any]:
    kept = [(buffer, buffer.clone()) for buffer in mod.buffers()]
    random = get_rng_state()
    results: list[Any] = []

    def run(recorder: Recorder) -> Graph:
        recorder.add_state(mod)
        recorder.add_arguments(mod, args, kwargs)
        with recorder.active():
            result = mod(*args, **kwargs)
        found, tree = tree_flatten(result)
        results[:] = [tree_unflatten(list(range(len(found))), tree)]
        for leaf in found:
            if not isinstance(leaf, (Tensor, *_PLAIN)):
                raise Uncapturable(f"the module returns a {type(leaf).__name__}")
        return recorder.finished(found)

    try:
        graph = settled(run)
    finally:
        set_rng_state(random)
        with no_grad():
            for buffer, before in kept:
                buffer.copy_(before)
    graph.remove_unused()
    return graph, results[0]


def _dynamic(
    mod: Any, args: Any, kwargs: Any, given: Any, hinted: str | None
) -> dict[int, dict[int, Dim]]:
    """Return for each tensor, by id, which of its dimensions may differ.

    Those with hints are called as `hinted` says; with None those stay as they are that can.
    """
    found: dict[int, dict[int, Dim]] = {}
    if not given:
        return found
    names = list(inspect.signature(mod.forward).bind(*args, **kwargs).arguments.items())
    if isinstance(given, Mapping):
        pairs = [(value, given.get(name)) for name, value in names]
    else:
        pairs = list(zip([value for _, value in names], given, strict=True))

    def add(value: Any, spec: Any) -> None:
        if spec is None:
            return
        if isinstance(value, Tensor):
            items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
            for number, dim in items:
                size = value.shape[number]
                if isinstance(dim, DimHint):
                    form = hinted if hinted or dim is not Dim.DYNAMIC else "s{size}"
                    if form is None or dim is Dim.STATIC or (dim is Dim.AUTO and size < 2):
                        continue
                    dim = Dim(form.format(place=len(found), number=number, size=size))
                if isinstance(dim, Dim):
                    found.setdefault(id(value), {})[number % value.ndim] = dim
                elif dim is not None and not (isinstance(dim, int) and dim == value.shape[number]):
                    raise TypeError(
                        f"export(): a dimension is a Dim, its size or None, got {dim!r}"
                    )
        elif isinstance(value, Mapping):
            for key, item in value.items():
                add(item, spec.get(key))
        else:
            for item, part in zip(value, spec, strict=True):
                add(item, part)

    for value, spec in pairs:
        add(value, spec)
    return found


def _collect(wanted: Any, given: Any, where: str, found: list[Any]) -> None:
    """Collect the tensors among arguments of a structure."""
    if isinstance(wanted, _Leaf):
        if not isinstance(given, Tensor):
            raise TypeError(f"{where}: expected a Tensor, got {type(given).__name__}")
        found.append(given)
    elif isinstance(wanted, (tuple, list)):
        if not isinstance(given, (tuple, list)) or len(given) != len(wanted):
            raise TypeError(f"{where}: expected {len(wanted)} values, got {given!r}")
        for number, (item, other) in enumerate(zip(wanted, given, strict=True)):
            _collect(item, other, f"{where}[{number}]", found)
    elif isinstance(wanted, Mapping):
        if not isinstance(given, Mapping) or list(given) != list(wanted):
            raise TypeError(f"{where}: expected {list(wanted)}, got {given!r}")
        for key, item in wanted.items():
            _collect(item, given[key], f"{where}[{key!r}]", found)
    elif wanted != given or type(wanted) is not type(given):
        raise ValueError(f"{where}: the program was exported for {wanted!r}, got {given!r}")


def _filled(outputs: Any, leaves: list[Any]) -> Any:
    numbers, tree = tree_flatten(outputs)
    return tree_unflatten([leaves[number] for number in numbers], tree)


# --- files ------------------------------------------------------------------------------------------


def save(ep: ExportedProgram, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a program to a file: a zip of ``program.json`` and ``state.safetensors``.

    Raises
    ------
    TypeError
        If an argument of a call is an object that the format has no words for, such as a Generator.
    """
    graph = ep.graph
    values = [*graph.inputs, *[value for node in graph.nodes for value in node.outputs]]
    writer = _Writer({value: number for number, value in enumerate(values)})
    text = json.dumps(
        {
            "format": FORMAT,
            "dims": [[dim.name, dim.min, dim.max] for dim in ep.dims.values()],
            "inputs": [[*writer.value(v), v.kind, v.requires_grad] for v in graph.inputs],
            "nodes": [
                {
                    "op": node.op.name,
                    "args": dict(zip(node.op.names, map(writer, node.args), strict=True)),
                    "outputs": [writer.value(value) for value in node.outputs],
                    "updates": node.updates,
                    "records": node.records,
                }
                for node in graph.nodes
            ],
            "result": writer(graph.result),
            "writes": [[writer(old), writer(new)] for old, new in graph.writes],
            "signature": [writer(ep._inputs), writer(ep._outputs)],
        },
        indent=1,
    )
    state = {name: tensor.detach().contiguous().cpu() for name, tensor in graph.state.items()}
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", text)
        archive.writestr("state.safetensors", safetensors.save(state))


def load(f: str | os.PathLike[str] | BinaryIO) -> ExportedProgram:
    """Read a program from a file that :func:`save` wrote; no code of the file runs.

    Raises
    ------
    ValueError
        If the file is none of these, damaged, or of a later version of the format.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            document = json.loads(archive.read("program.json"))
            state = safetensors.load(archive.read("state.safetensors"))
        if document["format"] > FORMAT:
            raise ValueError(f"the format is {document['format']}, this version reads {FORMAT}")
        program = _read(document, state)
        program.graph.check()
    except (
        zipfile.BadZipFile,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        EOFError,
    ) as error:
        raise ValueError(f"load(): this is no exported program: {error}") from error
    except RuntimeError as error:  # an op that is not installed, a device that is not there
        raise ValueError(f"load(): the program does not run here: {error}") from error
    return program


class _Writer:
    """Writes arguments as JSON has them."""

    def __init__(self, numbers: dict[Value, int]) -> None:
        self.numbers = numbers

    def value(self, value: Value) -> list[Any]:
        """Return what a value is."""
        return [
            value.name,
            [self(size) for size in value.shape],
            value.dtype.name,
            str(value.device),
        ]

    def __call__(self, item: Any) -> Any:
        kind = type(item)
        if kind is Value:
            return {"value": self.numbers[item]}
        if item is None or kind in (bool, int, str):
            return item
        if kind is _Leaf:
            return {"tensor": 0}
        if kind is float:
            return {"float": item.hex()}
        if kind is complex:
            return {"complex": [item.real.hex(), item.imag.hex()]}
        if kind is list:
            return [self(part) for part in item]
        if isinstance(item, tuple):
            return {"tuple": [self(part) for part in item]}
        if isinstance(item, dict):
            return {"dict": [[self(key), self(part)] for key, part in item.items()]}
        if kind is slice:
            return {"slice": [self(part) for part in (item.start, item.stop, item.step)]}
        if kind is Size:
            return {"size": [[list(names), str(factor)] for names, factor in item.terms.items()]}
        if kind is DType:
            return {"dtype": item.name}
        if kind is Device:
            return {"device": str(item)}
        if kind in (layouts.memory_format, layouts.layout):
            return {"layout": item.name}
        if item is Ellipsis:
            return {"ellipsis": 0}
        raise TypeError(f"save(): an argument of type {kind.__name__} cannot be written")


def _reader(values: list[Value]) -> Callable[[Any], Any]:
    def read(item: Any) -> Any:
        if isinstance(item, list):
            return [read(part) for part in item]
        if not isinstance(item, dict):
            return item
        ((kind, content),) = item.items()
        match kind:
            case "value":
                return values[content]
            case "tensor":
                return _Leaf()
            case "float":
                return float.fromhex(content)
            case "complex":
                return complex(*map(float.fromhex, content))
            case "tuple":
                return tuple([read(part) for part in content])
            case "dict":
                return {read(key): read(part) for key, part in content}
            case "slice":
                return slice(*[read(part) for part in content])
            case "size":
                return Size({tuple(names): Fraction(factor) for names, factor in content})
            case "dtype":
                return dtype_named(content)
            case "device":
                return Device(content)
            case "layout":
                return {v.name: v for v in vars(layouts).values() if hasattr(v, "name")}[content]
            case "ellipsis":
                return Ellipsis
            case _:
                raise ValueError(f"load(): {kind!r} is unknown")

    return read


def _read(document: Any, state: dict[str, Any]) -> ExportedProgram:
    graph = Graph()
    values: list[Value] = []
    read = _reader(values)

    def value(described: Any, node: Node | None, **more: Any) -> Value:
        name, shape, dtype, device = described
        made = Value(
            graph.name(name),
            tuple(read(shape)),
            dtype_named(dtype),
            Device(device),
            node=node,
            **more,
        )
        values.append(made)
        return made

    for *described, kind, requires_grad in document["inputs"]:
        made = value(described, None, kind=kind, requires_grad=requires_grad)
        graph.inputs.append(made)
        if kind != "input":
            tensor = state[made.name].to(made.device)
            graph.state[made.name] = (
                Parameter(tensor, requires_grad=requires_grad) if kind == "parameter" else tensor
            )
    for entry in document["nodes"]:
        op = known_op(entry["op"])
        args = tuple([read(entry["args"][name]) for name in op.names])
        node = Node(op, args, updates=tuple(entry["updates"]), records=entry["records"])
        node.outputs = [value(described, node) for described in entry["outputs"]]
        node.result = node.outputs[0] if len(node.outputs) == 1 else tuple(node.outputs)
        graph.nodes.append(node)
    graph.result = read(document["result"])
    graph.writes = [(read(old), read(new)) for old, new in document["writes"]]
    inputs, outputs = map(read, document["signature"])
    return ExportedProgram(
        graph,
        {name: Dim(name, min=low, max=high) for name, low, high in document["dims"]},
        inputs,
        outputs,
    )
