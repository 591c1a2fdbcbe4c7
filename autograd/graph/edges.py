"""Places in the graph, as they are handed to backward passes instead of tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorplug.core.tensor.base import TRACKED, TensorBase, new_tensor

from .nodes import AccumulateGrad, MultiNode, Node, OutputNode
from .views import edge_of, requires_grad


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: a node, and the number of its output.

    It can stand for the tensor in :func:`tensorplug.autograd.grad` and
    :func:`tensorplug.autograd.backward`, so that the tensor itself need not be kept.
    """

    node: Any
    output_nr: int
    #: What keeps the place alive.
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the place in the graph that a tensor's gradient goes to.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor(3.0, requires_grad=True)
    >>> edge = tp.autograd.graph.get_gradient_edge(x * x)
    >>> tp.autograd.grad(edge, x)
    (tensor(6.),)
    """
    if not requires_grad(tensor):
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    edge = edge_of(tensor)
    if isinstance(edge, TensorBase):
        return GradientEdge(AccumulateGrad(edge), 0, edge)
    return GradientEdge(tensor.grad_fn, tensor.output_nr, edge)


class EdgeOutput(OutputNode):
    """One output of a node, named by an edge: no tensor has it, so nothing in the graph leads to it."""

    __slots__ = ()


def stand_in(value: Any) -> Any:
    """Return a tensor without contents in place of a :class:`GradientEdge`; others as they are."""
    if not isinstance(value, GradientEdge):
        return value
    edge = value.ownership_token
    if edge is None:
        edge = value.node.variable if isinstance(value.node, AccumulateGrad) else value.node
    if not isinstance(edge, Node):
        return edge
    if isinstance(edge, MultiNode):
        edge = EdgeOutput(edge, value.output_nr)
    made = new_tensor(None, edge.key, edge.shape)
    made._node = edge
    made._state = TRACKED
    return made
