"""Exported programs in files: a zip of JSON and safetensors, in which there is no code."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any, BinaryIO

from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, dtype_named
from tensorplug.core.tensor import layout as layouts
from tensorplug.graph import Graph, Node, Value
from tensorplug.graph.nodes import known_op
from tensorplug.graph.symbolic import Size
from tensorplug.nn import Parameter

from .. import safetensors
from .dims import Dim
from .program import ExportedProgram, Leaf

#: The version of the format; a file of a later one is refused.
FORMAT = 1


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
        if kind is Leaf:
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
                return Leaf()
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
