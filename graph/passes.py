"""Passes: what is done to a graph before it runs as a program, where nothing is differentiated."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd.grad_mode import no_grad
from tensorplug.core.device.dtypes import float32, float64
from tensorplug.core.dispatch.op import Op
from tensorplug.nn import functional

from .graph import Graph
from .nodes import Node, Value, map_values

__all__ = ["fold_batch_norm", "merge_common", "optimize"]


def optimize(
    graph: Graph, shown: frozenset[str] = frozenset(), returned: frozenset[str] = frozenset()
) -> tuple[Graph, list[Any]]:
    """Return a graph that computes the same with less, and of which state it holds the present values.

    Inputs that stay keep their names. Of the state `shown`, by name, no values are held. Results show
    memory of the values `returned`.
    """
    made = graph.copy()
    merge_common(made, returned)
    folded = fold_batch_norm(made, shown)
    made.remove_unused()
    return made, folded


def _op(function: Any) -> Op:
    return function.op


_BATCH_NORM = _op(functional.batch_norm)
_CONVOLUTIONS = frozenset(map(_op, (functional.conv1d, functional.conv2d, functional.conv3d)))


def fold_batch_norm(graph: Graph, shown: frozenset[str] = frozenset()) -> list[Any]:
    """Multiply the normalisation after a convolution into its weights; return the state that those are of.

    Results differ from those of two steps by rounding; the factors themselves are made in float64.
    """
    users = graph.users()
    kept = set(graph.outputs())
    written = {target for target, _ in graph.writes}
    folded: list[Any] = []
    others: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op is not _BATCH_NORM or node.updates or node.arguments["training"]:
            continue
        given = node.arguments
        source: Value = given["input"]
        conv = source.node
        if (
            conv is None
            or conv.op not in _CONVOLUTIONS
            or source in kept
            or users[source] != [node]
        ):
            continue
        names = ("running_mean", "running_var", "weight", "bias")
        values = [conv.arguments["weight"], conv.arguments["bias"], *[given[n] for n in names]]
        state = [value for value in values if value is not None]
        if any(
            [
                v.name not in graph.state
                or v.name in shown
                or v in written
                or v.dtype is not float32
                for v in state
            ]
        ):
            continue
        with no_grad():
            tensors = [None if value is None else graph.state[value.name] for value in values]
            folded += [tensor for tensor in tensors if tensor is not None]
            weight, bias = _folded(given["eps"], *tensors)
        made = {
            "weight": graph.add_input("folded_weight", weight, "constant"),
            "bias": graph.add_input("folded_bias", bias, "constant"),
        }
        conv.args = tuple([made.get(name, arg) for name, arg in conv.arguments.items()])
        others[node.output] = source
    _take_out(graph, others)
    return folded


def _folded(eps: float, weight: Any, *others: Any) -> tuple[Any, Any]:
    """Return a convolution's weight and bias with the normalisation in them."""
    wide: list[Any] = [None if tensor is None else tensor.to(float64) for tensor in others]
    bias, mean, var, scale, shift = wide
    factor = (var + eps).rsqrt()
    if scale is not None:
        factor = factor * scale
    moved = (-mean if bias is None else bias - mean) * factor
    if shift is not None:
        moved = moved + shift
    per_channel = factor.to(float32).reshape(-1, *[1] * (weight.ndim - 1))
    return weight * per_channel, moved.to(float32)


def merge_common(graph: Graph, returned: frozenset[str] = frozenset()) -> int:
    """Have calls that are alike be made once, but for `returned` values; return how many went."""
    known: dict[Any, Node] = {}
    kept = {id(value) for value in graph.outputs()}
    kept.update([id(v) for node in graph.nodes for v in node.outputs if v.name in returned])
    others: dict[Value, Value] = {}
    removed = 0
    for node in graph.nodes:
        op = node.op
        if any([value in others for value in node.values()]):
            node.args = map_values(node.args, lambda value: others.get(value, value))
        if op.random or node.updates or not node.outputs:
            continue
        if op.kind == "composite" and not op.pure:
            continue
        if any([id(value) in kept for value in node.outputs]):
            continue  # what is returned is memory of its own
        key = (node.op, node.records, _key(node.args))
        try:
            first = known.setdefault(key, node)
        except TypeError:  # an argument that has no hash
            continue
        if first is not node:
            others.update(zip(node.outputs, first.outputs, strict=True))
            removed += 1
    _take_out(graph, others)
    return removed


def _take_out(graph: Graph, others: dict[Value, Value]) -> None:
    """Have whatever uses values use others, and take out what makes them."""
    if others:
        graph.nodes = [node for node in graph.nodes if others.keys().isdisjoint(node.outputs)]
        graph.replace_all(others)


def _key(nested: Any) -> Any:
    if isinstance(nested, (tuple, list)):
        return (type(nested), *[_key(item) for item in nested])
    if type(nested) is slice:
        return ("slice", nested.start, nested.stop, nested.step)
    if type(nested) is float or type(nested) is complex:
        return (type(nested), repr(nested))
    return (type(nested), nested) if type(nested) is not Value else nested
