"""Shapes and dtypes of a graph's values."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorplug.core import Device, DType, Tensor
from tensorplug.core.tensor.shapes import Size

from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor."""

    shape: Size
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    device: Device
    memory_format: Any = None
    is_quantized: bool = False
    qparams: Any = None


class ShapeProp(Interpreter):
    """Runs a graph and notes in ``node.meta["tensor_meta"]`` what each value is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> traced = tp.fx.symbolic_trace(tp.nn.Sequential(tp.nn.Linear(3, 2)))
    >>> _ = ShapeProp(traced).propagate(tp.ones(5, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(5, 3), (5, 2), (5, 2)]
    """

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note what it is."""
        result = super().run_node(n)
        found = False

        def described(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return TensorMetadata(
                value.shape, value.dtype, value.requires_grad, value.stride(), value.device
            )

        metadata = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = metadata
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with arguments; return its result."""
        return super().run(*args)
