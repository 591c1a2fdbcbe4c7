"""Ops that graphs need to say without writing what programs do by writing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.device.generator import generator_of
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.nn.ops.dropout import native_dropout, native_dropout_backward

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(name="graph.write_view", method=False)
def write_view(input: Tensor, value: Tensor, views: Any) -> Tensor:
    """Return `input` with a value in the place of what views show of it.

    Parameters
    ----------
    input : Tensor
        What the views are of; it stays as it is.
    value : Tensor
        Of the shape and dtype of the last view.
    views : tuple of (str, tuple, int or None)
        The ops that make the views, one of another: the name, the arguments after the first, and which of
        several results it is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> write_view(tp.zeros(2, 2), tp.ones(2), (("basic_index", ((1,),), None),))
    tensor([[0., 0.],
            [1., 1.]])
    """
    output = input.clone()
    shown(output, views).copy_(value)
    return output


def shown(tensor: Any, views: Any) -> Any:
    """Return the last of a chain of views of a tensor."""
    from .nodes import call, known_op

    for name, arguments, number in views:
        tensor = call(known_op(name), (tensor, *arguments))
        if number is not None:
            tensor = tensor[number]
    return tensor


@composite(name="graph.detach", method=False)
def detach(input: Tensor) -> Tensor:
    """Return `input` cut off from what made it, as ``Tensor.detach`` does.

    Examples
    --------
    >>> import tensorplug as tp
    >>> detach(tp.ones(2, requires_grad=True)).requires_grad
    False
    """
    return input.detach()


@composite(name="graph.dropout", random=True, method=False, outputs="output, mask")
def dropout(input: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Return `input` with dropout, and which elements were kept, which the derivative takes.

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, mask = dropout(tp.ones(4), 0.5)
    >>> tp.equal(output, mask * 2.0)
    True
    """
    seed, offset = generator_of(input.device).take(math.prod(input.shape))
    return native_dropout(input, p, seed, offset)


DERIVATIVES = [
    derivative(
        "graph.dropout", input=lambda g_output, mask, p: native_dropout_backward(g_output, mask, p)
    )
]


class Unexpected(RuntimeError):
    """Data is not what a graph was captured for."""


@composite(name="graph.expect", method=False, outputs="")
def expect(input: Tensor, value: Any) -> None:
    """Raise Unexpected unless a tensor has these numbers, which the program read.

    Examples
    --------
    >>> import tensorplug as tp
    >>> expect(tp.ones(2), [1.0, 1.0])
    """
    found = input.tolist()
    if repr(found) != repr(value):  # nan is unlike itself, and -0.0 like 0.0
        raise Unexpected(
            f"the program read {value} of a tensor, and was captured for that alone; now it is {found}"
        )


@composite(name="graph.expect_shape", method=False, outputs="")
def expect_shape(input: Tensor, shape: Any) -> None:
    """Raise Unexpected unless a tensor has this shape, which depends on data.

    Examples
    --------
    >>> import tensorplug as tp
    >>> expect_shape(tp.ones(2), (2,))
    """
    if tuple(input.shape) != tuple(shape):
        raise Unexpected(
            f"the program made a tensor of shape {tuple(shape)}, and was captured for that alone; "
            f"now it is {tuple(input.shape)}"
        )
