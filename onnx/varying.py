"""Sizes that vary: what callers say of them, and one graph for programs captured at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorplug.core import Tensor
from tensorplug.graph import Graph, Value

from .errors import ONNXError
from .writing import Size, Writer

__all__ = ["mapped", "merged", "tensors_of", "varying"]


def varying(
    graph: Graph,
    names: Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: Any,
    axes: Mapping[str, Any] | None,
) -> list[dict[int, str]]:
    """Return for each input the dimensions that vary, with the names of their sizes."""
    count = len(graph.arguments)
    found: list[dict[int, str]] = [{} for _ in range(count)]
    if shapes:
        if isinstance(shapes, Mapping):
            own = [value.name for value in graph.arguments]
            unknown = [name for name in shapes if name not in own and name not in names]
            if unknown:
                raise ValueError(
                    f"dynamic_shapes names {unknown[0]!r}; the inputs are {', '.join(own)}"
                )
            each = [shapes.get(own[i], shapes.get(names[i])) for i in range(count)]
        else:
            tensors = [isinstance(a, Tensor) for a in (*args, *kwargs.values())]
            if len(shapes) == len(tensors):
                each = [s for s, is_tensor in zip(shapes, tensors, strict=True) if is_tensor]
            else:
                each = list(shapes)
            if len(each) != count:
                raise ValueError(f"dynamic_shapes has {len(each)} entries for {count} inputs")
        for place, (entry, name) in enumerate(zip(each, names, strict=True)):
            found[place] = _dimensions(entry, name)
    for name, entry in (axes or {}).items():
        if name in names:  # outputs follow from the inputs
            found[names.index(name)].update(_dimensions(entry, name))
    for value, dims in zip(graph.arguments, found, strict=True):
        for dim in dims:
            if not -len(value.shape) <= dim < len(value.shape):
                raise ValueError(
                    f"input {value.name!r} has {len(value.shape)} dimensions, none is {dim}"
                )
    return [
        {d % len(v.shape): n for d, n in dims.items()}
        for v, dims in zip(graph.arguments, found, strict=True)
    ]


def _dimensions(entry: Any, name: str) -> dict[int, str]:
    """Return dimensions and names of sizes from what a caller writes."""
    if entry is None:
        return {}
    if isinstance(entry, Mapping):
        pairs = [(dim, size) for dim, size in entry.items() if size is not None]
    else:
        items = list(entry)
        plain = all(isinstance(item, int) and not isinstance(item, bool) for item in items)
        pairs = (
            [(d, True) for d in items]
            if plain
            else [(d, s) for d, s in enumerate(items) if s is not None]
        )
    found: dict[int, str] = {}
    for dim, size in pairs:
        if isinstance(size, str):
            found[dim] = size
        else:  # an object with a name, or whatever says that the size varies
            own = getattr(size, "name", None) or getattr(size, "__name__", None)
            found[dim] = own if isinstance(own, str) and own != "AUTO" else f"{name}_dim_{dim}"
    return found


def merged(graphs: list[Graph], writer: Writer) -> Graph:
    """Return the first graph, with sizes that differ among the graphs in place of numbers."""
    graph = graphs[0]
    if len(graphs) == 1:
        return graph
    if len({tuple(node.op.name for node in g.nodes) for g in graphs}) > 1:
        raise ONNXError(
            "the program calls other ops as sizes vary: fix the size that decides, or export each case"
        )
    for values in zip(*[g.inputs for g in graphs], strict=True):
        _note(writer, values)
    for nodes in zip(*[g.nodes for g in graphs], strict=True):
        try:
            nodes[0].args = _together([node.args for node in nodes])
        except ValueError as error:
            raise ONNXError(
                f"op {nodes[0].op.name} ({nodes[0].source}): {error} as sizes vary"
            ) from None
        for values in zip(*[node.outputs for node in nodes], strict=True):
            _note(writer, values)
    return graph


def _together(items: Sequence[Any]) -> Any:
    """Return what arguments of several captures have in common, sizes where numbers differ."""
    first = items[0]
    if isinstance(first, Value):
        return first
    if isinstance(first, slice):
        parts = [_together([getattr(i, name) for i in items]) for name in ("start", "stop", "step")]
        return slice(*parts)
    if isinstance(first, (list, tuple)):
        if len({len(item) for item in items}) > 1:
            raise ValueError("it is given lists of several lengths")
        parts = [_together(column) for column in zip(*items, strict=True)]
        return parts if isinstance(first, list) else tuple(parts)
    if isinstance(first, dict):
        return {key: _together([item[key] for item in items]) for key in first}
    if isinstance(first, int) and not isinstance(first, bool) and any(i != first for i in items):
        return Size(items)
    if isinstance(first, float) and any(i != first and i == i for i in items):
        raise ValueError(f"it is given the numbers {', '.join(map(str, items))}")
    return first


def mapped(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return nested arguments with a function's result in the place of each tensor."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        parts = [mapped(item, function) for item in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return value


def tensors_of(value: Any) -> list[Tensor]:
    """Return the tensors among nested arguments, each once."""
    found: dict[int, Tensor] = {}
    mapped(value, lambda tensor: found.setdefault(id(tensor), tensor))
    return list(found.values())


def _note(writer: Writer, values: Sequence[Value]) -> None:
    shapes = zip(*[value.shape for value in values], strict=True)
    writer.shapes[values[0]] = tuple(s[0] if len(set(s)) == 1 else Size(s) for s in shapes)
