"""Noting: what a call of an op becomes in a graph, its node and what is written."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op import Op
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.layout import is_dense
from tensorplug.core.tensor.shapes import contiguous_strides

from .memory import share
from .nodes import infer, known_op, map_leaves, tensors_in
from .reading import Reading

__all__ = ["Noting"]


class Noting(Reading):
    """The nodes of calls."""

    def _note(self, op: Op, bound: tuple[Any, ...], result: Any, changed: list[Any]) -> None:
        given = tensors_in(bound)
        if isinstance(result, TensorBase) and any([result is tensor for tensor in given]):
            if not changed:
                return  # there was nothing to do
            self._refuse(f"{op.name}() returns an argument that it wrote")
        marks = {id(tensor) for tensor in changed}
        updates = tuple(
            [p for p, arg in enumerate(bound) if any([id(t) in marks for t in tensors_in(arg)])]
        )
        arguments = map_leaves(bound, self.value_of)
        node = self._node(op, arguments, updates)
        node.result = map_leaves(result, lambda tensor: self.graph.add_output(node, tensor))
        made = list(zip(tensors_in(result), node.outputs, strict=True))
        updated = [
            (tensor, self.graph.add_output(node, tensor, "updated"))
            for position in updates
            for tensor in tensors_in(bound[position])
        ]
        for number, (tensor, value) in enumerate(made):
            if id(tensor) in self.values:
                continue  # an argument among the results
            self._keep(tensor, value)
            sources = [source for source in given if share(tensor, source)]
            if sources:
                several = None if isinstance(result, TensorBase) else number
                first = isinstance(bound[0], TensorBase) and any([bound[0] is t for t in sources])
                how = (op.name, arguments[1:], several) if first and not updates else None
                self._show(tensor, sources[0], how)
        for tensor, value in updated:
            self._write(tensor, value)

    def _note_out(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        out = kwargs.pop("out")
        targets = list(out) if isinstance(out, (tuple, list)) else [out]
        if "dtype" in op.names and "device" in op.names:
            given = {"dtype": targets[0].dtype, "device": targets[0].device}
            for name in op.names[: len(args)]:
                given.pop(name, None)
            kwargs = given | {name: value for name, value in kwargs.items() if value is not None}
        self._compute(op, args, kwargs, targets)

    def _compute(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], targets: list[Any]
    ) -> None:
        """Note a call whose results go into tensors that are there, converted to their dtypes."""
        node = self._node(op, map_leaves(op.bind(args, kwargs), self.value_of))
        try:
            results = tensors_in(infer(op, node.args))
        except Exception:  # only data tells: it is converted in any case
            results = []
        like = results or targets
        node.result = [self.graph.add_output(node, tensor) for tensor in like]
        node.result = node.result[0] if len(like) == 1 else tuple(node.result)
        for target, value in zip(targets, list(node.outputs), strict=True):
            if not results or value.dtype is not target._key.dtype:
                node = self._node(known_op("cast"), (value, target._key.dtype))
                node.result = self.graph.add_output(node, target)
                value = node.output
            value.device = target._key.device
            strides = target._key.runtime.strides(target._array)
            dense = id(target) not in self.views and is_dense(target._shape, strides)
            if op.random and dense and strides != contiguous_strides(target._shape):
                node = self._node(known_op("clone_strided"), (value, strides))
                value = node.result = self.graph.add_output(node, target)
            self._write(target, value)
