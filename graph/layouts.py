"""Layouts: images between the convolutions of a program that trains lie channels last.

Whether that pays is a device's to say: its fusers do (``Fuser.channels_last``). Only what is known to keep
an order of elements, and would have them row by row, is run so; everything else, results too, gets rows.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core.device.dtypes import float32
from tensorplug.core.dispatch.op import Op
from tensorplug.core.plugins import manager
from tensorplug.core.tensor.layout import channels_last, contiguous_format
from tensorplug.nn import functional

from .graph import Graph
from .nodes import Node, Value, run_node

__all__ = ["Values"]


def _ops(*functions: Any) -> frozenset[Op]:
    return frozenset([function.op for function in functions])


_CONVOLUTIONS = _ops(functional.conv2d)
_KEEPING = _ops(
    functional.batch_norm, functional.max_pool2d, functional.avg_pool2d,
    functional.adaptive_avg_pool2d, functional.relu6, functional.hardtanh, functional.hardswish,
    functional.hardsigmoid, functional.silu, functional.gelu, functional.elu, functional.leaky_relu,
    functional.mish, functional.softplus,
)  # fmt: skip


class Values(dict[Value, Any]):
    """The tensors of a graph that runs node by node, as if all of them lay in rows where they would.

    Parameters
    ----------
    graph : Graph
        What runs.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        # What lies channels last.
        self._last: dict[Value, Any] = {}
        self._begin = _beginning(graph)

    def __missing__(self, value: Value) -> Any:
        tensor = self[value] = self._last[value].clone(memory_format=contiguous_format)
        return tensor

    def run(self, node: Node) -> None:
        """Run a node."""
        images = self._images(node)
        if not images:
            run_node(node, self)
            return
        found = {value: self[value] for value in node.values() if value not in images}
        for value in images:
            if value not in self._last:
                self._last[value] = self[value].clone(memory_format=channels_last)
            found[value] = self._last[value]
        run_node(node, found)
        for value in node.outputs:
            (self if _in_rows(found[value]) else self._last)[value] = found[value]

    def _images(self, node: Node) -> list[Value]:
        """Return the arguments that a node gets channels last; none where it gets all as they are."""
        if node.op in _CONVOLUTIONS:
            source = node.args[0]
            begins = node in self._begin and _in_rows(self[source])
            return [source] if source in self._last or begins else []
        if not (node.op.pointwise or node.op in _KEEPING):
            return []
        given = dict.fromkeys(node.values())
        if self._last.keys().isdisjoint(given):
            return []
        shape = node.outputs[0].shape if node.op.pointwise else node.args[0].shape
        images = [value for value in given if value.shape == shape]
        rows = all([value in self._last or _in_rows(self[value]) for value in images])
        return images if rows else []


def _in_rows(tensor: Any) -> bool:
    strides = []
    step = 1
    for size in reversed(tensor._shape):
        strides.append(step)
        step *= max(size, 1)
    return bool(tensor.stride() == tuple(strides[::-1]))


def _beginning(graph: Graph) -> set[Node]:
    """Return the convolutions whose images come to another one."""
    faster: dict[Any, bool] = {}
    found: set[Node] = set()
    leading: set[Value] = set()
    for node in reversed(graph.nodes):
        leads = not leading.isdisjoint(node.outputs)
        if node.op in _CONVOLUTIONS:
            source = node.args[0]
            type_ = source.device.type
            if type_ not in faster:
                faster[type_] = any([f.channels_last for f, _ in manager.fusers_of(type_)])
            if faster[type_] and source.dtype is float32 and len(source.shape) == 4:
                leading.add(source)
                if leads:
                    found.add(node)
        elif leads and (node.op.pointwise or node.op in _KEEPING):
            leading.update(node.values())
    return found
