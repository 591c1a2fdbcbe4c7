"""Programs from the protos of graphs: operators are looked up, and those that cannot run are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros

from .package import onnx_package
from .program import Call, Program, Step
from .registry import find
from .values import DTYPES, NARROW, attribute_value, tensor_of, type_name

__all__ = ["Builder"]

#: Constants of at most so many elements may take part in computations on the host.
_SMALL = 64
#: What is on the host, whatever it is computed from.
_SIZES = frozenset({"Shape", "Size", "SequenceLength"})
_DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass
class _Scope:
    """What is known of names in a graph: constants, with those of graphs around, and values on the host."""

    constants: dict[str, Any] = field(default_factory=dict)
    trained: set[str] = field(default_factory=set)
    on_host: set[str] = field(default_factory=set)

    def inner(self) -> _Scope:
        return _Scope(dict(self.constants), set(self.trained), set(self.on_host))

    def define(self, name: str) -> None:
        """Forget what a name meant in a graph around."""
        self.constants.pop(name, None)
        self.trained.discard(name)
        self.on_host.discard(name)

    def is_small(self, name: str) -> bool:
        """Return whether a name is a constant that computations on the host can take."""
        value = self.constants.get(name)
        if isinstance(value, Tensor):
            return value.numel() <= _SMALL and name not in self.trained
        return value is not None


class Builder:
    """Builds the programs of a model, and collects its tensors and what is not supported.

    Attributes
    ----------
    tensors
        The initializers and constants that steps want on the module's device, by key.
    parameters
        The keys of those that a gradient changes.
    unsupported
        Pairs of an operator and the reason.
    """

    def __init__(
        self, versions: Mapping[str, int], folder: str, trainable: Callable[[str], bool] | None
    ) -> None:
        self.versions = versions
        self.folder = folder
        self.trainable = trainable
        self.tensors: dict[str, Any] = {}
        self.parameters: set[str] = set()
        self.unsupported: list[tuple[str, str]] = []
        self.narrow: set[str] = set()  # initializers held in a wider type than the model's

    def build(self, graph: Any, around: _Scope | None = None, on_host: int = 0) -> Program:
        """Return the program of a GraphProto, of whose inputs the first ``on_host`` are on the host."""
        scope = around.inner() if around else _Scope()
        own: set[str] = set()
        for name, value in self._initializers(graph):
            scope.define(name)
            scope.constants[name] = value
            own.add(name)
            chosen = _has_dimensions(value) if self.trainable is None else self.trainable(name)
            if chosen and isinstance(value, Tensor) and value.dtype.is_floating_point:
                scope.trained.add(name)
        inputs = [i.name for i in graph.input if around is not None or i.name not in own]
        for i, name in enumerate(inputs):
            scope.define(name)
            own.discard(name)
            if i < on_host:
                scope.on_host.add(name)
        program = Program(tuple(inputs), tuple(output.name for output in graph.output))
        statistics: set[str] = set()
        for node in graph.node:
            self._add(node, program, scope, own)
        program.on_host = scope.on_host.intersection(program.outputs)
        wanted = set(program.outputs).union(*(step.uses() for step in program.steps))
        for step in program.steps:
            statistics.update(
                step.inputs[i] or "" for i in step.operator.constant if i < len(step.inputs)
            )
        for name in sorted(own & wanted, key=list(scope.constants).index):
            self._store(name, scope.constants[name], program, name in scope.trained - statistics)
        program.finish()
        return program

    def _initializers(self, graph: Any) -> Iterator[tuple[str, Any]]:
        for proto in graph.initializer:
            if proto.data_type in NARROW:
                self.narrow.add(proto.name)
            yield (
                proto.name,
                self._tried(f"initializer {proto.name!r}", tensor_of, proto, self.folder),
            )
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            yield name, self._tried(f"initializer {name!r}", _dense, sparse, self.folder)

    def _tried(self, what: str, read: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except NotImplementedError as error:
            self.unsupported.append((what, str(error)))
            return None

    def _add(self, node: Any, program: Program, scope: _Scope, own: set[str]) -> None:
        """Append the step of a node, or where it is constant note its value."""
        domain = "" if node.domain in _DEFAULT_DOMAINS else node.domain
        label = (
            f"node {node.name!r} (op {node.op_type})"
            if node.name
            else f"node of op {node.op_type}, output {_first(node.output)!r}"
        )
        if domain == "" and node.op_type == "Constant":
            results = [self._tried(label, _constant, node, self.folder)]
            on_host = True
        else:
            step = self._step(node, domain, label, scope)
            if step is not None and step.operator.prepare is not None:
                self._lift(step, node, program)
            if step is None:
                for name in node.output:
                    scope.define(name)
                return
            on_host = step.on_host
            results = _folded(step) if on_host else []
            if not results:
                program.steps.append(step)
        for i, name in enumerate(node.output):
            if not name:
                continue
            scope.define(name)
            own.discard(name)
            if results:
                scope.constants[name] = results[i]
                own.add(name)
            elif on_host:
                scope.on_host.add(name)

    def _step(self, node: Any, domain: str, label: str, scope: _Scope) -> Step | None:
        name = f"{domain}.{node.op_type}".lstrip(".")
        version = self.versions.get(domain, 1)
        operator = find(domain, node.op_type, version)
        if operator is None:
            self.unsupported.append((name, _reason(domain, node.op_type, version)))
            return None
        attributes: dict[str, Any] = {}
        graphs: dict[str, Program] = {}
        for attribute in node.attribute:
            if attribute.name not in operator.attributes:
                if attribute.name not in _IGNORED:
                    self.unsupported.append(
                        (name, f"attribute {attribute.name!r} of opset {version}")
                    )
                continue
            if attribute.type == 5:  # GRAPH
                inner = 1 if node.op_type == "Loop" else 0
                graphs[attribute.name] = self.build(attribute.g, scope, inner)
            else:
                if attribute.name in _TYPES and attribute.i and attribute.i not in DTYPES:
                    self.unsupported.append((name, f"makes tensors of {type_name(attribute.i)}"))
                attributes[attribute.name] = self._tried(
                    f"{name}, attribute {attribute.name!r}", attribute_value, attribute
                )
        inputs = tuple(i or None for i in node.input)
        if node.op_type == "QuantizeLinear" and self.narrow.intersection(node.input):
            self.unsupported.append((name, "makes tensors of fewer than 8 bits"))
        plain = [i for i, given in enumerate(inputs) if given and i not in operator.host]
        on_host = domain == "" and node.op_type in _SIZES
        if plain and not graphs and not operator.placed and not on_host:
            on_host = all(
                inputs[i] in scope.on_host or scope.is_small(inputs[i] or "") for i in plain
            )
        fixed: dict[int, Any] = {}
        moved: list[int] = []
        for i, given in enumerate(inputs):
            if given is None:
                continue
            value = scope.constants.get(given)
            if i in operator.host and value is not None and given not in scope.trained:
                fixed[i] = value.tolist() if isinstance(value, Tensor) else value
            elif (on_host and scope.is_small(given)) or (
                value is not None and not isinstance(value, Tensor)
            ):
                fixed[i] = value
            elif given in scope.on_host and i not in operator.host and not on_host:
                moved.append(i)
        outputs = tuple(o or f"{label} {i}" for i, o in enumerate(node.output))
        return Step(
            operator, label, inputs, outputs, attributes, graphs, tuple(moved), fixed, on_host
        )

    def _lift(self, step: Step, node: Any, program: Program) -> None:
        """Make the tensors of a node's attributes state of the module."""
        prepare = step.operator.prepare
        prepared = self._tried(step.operator.name, prepare, step.attributes) if prepare else None
        step.attributes = {}
        for attribute, value in (prepared or {}).items():
            if isinstance(value, Tensor):
                name = f"{node.name or _first(node.output)}.{attribute}"
                trained = attribute in step.operator.trained
                trained &= self.trainable is None or self.trainable(name)
                self._store(name, value, program, trained)
                step.lifted[attribute] = name
            else:
                step.attributes[attribute] = value

    def _store(self, name: str, value: Any, program: Program, trained: bool) -> None:
        if not isinstance(value, Tensor):
            program.constants[name] = value
            return
        key, number = name, 1
        while key in self.tensors:
            key, number = f"{name}_{number}", number + 1
        self.tensors[key] = value
        program.stored[name] = key
        if trained:
            self.parameters.add(key)


#: Attributes that name the element type of a result.
_TYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype"})
#: Attributes that say nothing of what is computed.
_IGNORED = frozenset({"consumed_inputs", "seed", "nodes_hitrates", "nodes_hitrates_as_tensor"})


def _has_dimensions(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0


def _folded(step: Step) -> list[Any]:
    """Return what a step of constants computes, an empty list where it is computed at each call."""
    if step.operator.context or len(step.fixed) < sum(name is not None for name in step.inputs):
        return []
    values: dict[str, Any] = {}
    try:
        step.run(values, Call(None, False, {}))
    except Exception:  # a fault in the model, told when the step runs
        return []
    results = [values[name] for name in step.outputs]
    return results if all(isinstance(result, Tensor) for result in results) else []


def _constant(node: Any, folder: str) -> Any:
    """Return the value of a Constant node."""
    [attribute] = node.attribute
    if attribute.name == "sparse_value":
        return _dense(attribute.sparse_tensor, folder)
    if attribute.name == "value":
        return tensor_of(attribute.t, folder)
    value = attribute_value(attribute)
    if attribute.name.startswith("value_string"):
        return value
    helper = onnx_package("helper")
    number = 7 if attribute.name.startswith("value_int") else 1  # INT64, FLOAT
    shape = [len(value)] if isinstance(value, list) else []
    return tensor_of(
        helper.make_tensor(
            attribute.name, number, shape, value if isinstance(value, list) else [value]
        )
    )


def _dense(sparse: Any, folder: str) -> Tensor:
    """Return the tensor of a SparseTensorProto with all its elements."""
    values = tensor_of(sparse.values, folder)
    indices = tensor_of(sparse.indices, folder)
    shape = list(sparse.dims)
    result = zeros(shape, dtype=values.dtype, device="cpu")
    if indices.dim() == 1:
        result.view(-1)[indices] = values
    else:
        result[tuple(indices.unbind(1))] = values
    return result


def _reason(domain: str, name: str, version: int) -> str:
    """Return why nothing runs an operator."""
    from .operators.unsupported import REASONS

    if (domain, name) in REASONS:
        return REASONS[domain, name]
    if domain not in ("", "ai.onnx.ml"):
        return f"the domain {domain!r} is not of ONNX, and the model brings no function for it"
    if (known := find(domain, name, 10**6)) is not None:
        return f"known from opset {known.since} on, the model has {version}"
    return f"no operator of ONNX, or one newer than opset {version}"


def _first(names: Any) -> str:
    return next(iter(names), "")
