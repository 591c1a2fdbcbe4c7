"""Adds ops, with all that automatic differentiation may be told of them.

``clip_smoothly`` is a primitive with a derivative, ``swish`` made of other ops and with a derivative in one
piece, ``row_sums`` a primitive with rules for every transform, and ``unfinished`` one whose derivative was
forgotten. Of core's op ``square`` the package replaces the derivative.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorplug.plugin import (
    Kernel,
    KernelTable,
    Spec,
    VmapInfo,
    composite,
    derivative,
    elementwise,
    hookimpl,
    linear,
    primitive,
    vmap_rule,
)

__all__ = ["calls", "clip_smoothly", "row_sums", "swish", "unfinished"]

#: What the package was asked for.
calls: list[str] = []


@primitive("input, bound", name="new_op.clip_smoothly", pointwise=True)
def clip_smoothly(input: Any, bound: Any) -> Spec:
    """Return ``bound * tanh(input / bound)``."""
    return elementwise("clip_smoothly", input, bound, floating=True)


@composite(name="new_op.swish")
def swish(input: Any, beta: float = 1.0) -> Any:
    """Return ``input * sigmoid(beta * input)``."""
    return input * (beta * input).sigmoid()


@primitive("input", name="new_op.row_sums")
def row_sums(input: Any) -> Spec:
    """Return the sums over the last dimension."""
    return Spec((input,), input.shape[:-1], input.dtype)


@primitive("input", name="new_op.unfinished", pointwise=True)
def unfinished(input: Any) -> Spec:
    """Return twice the input."""
    return elementwise("unfinished", input)


def swish_backward(g: Any, input: Any, beta: float) -> Any:
    """Return the derivative of ``swish``, which keeps the input alone."""
    calls.append("swish gradient")
    s = (beta * input).sigmoid()
    return g * (s + beta * input * s * (1 - s))


def square_backward(g: Any, input: Any) -> Any:
    """Return the derivative of core's ``square``."""
    calls.append("square gradient")
    return g * (input + input)


def row_sums_of_batch(info: VmapInfo, in_dims: tuple[Any, ...], input: Any) -> tuple[Any, int]:
    """Return the sums for all samples at once."""
    calls.append(f"row sums of {info.batch_size}")
    return row_sums(input.movedim(in_dims[0], 0)), 0


table = KernelTable("cpu")


@table.kernel("new_op.row_sums")
def sum_rows(input):
    return input.sum(-1)


@table.kernel("new_op.unfinished")
def double(input):
    return input + input


@table.kernel("new_op.clip_smoothly")
def clip(input, bound):
    return bound * np.tanh(input / bound)


class NewOpPlugin:
    name = "new_op"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Any]:
        return [clip_smoothly, row_sums, swish, unfinished]

    @hookimpl
    def tensorplug_kernels(self) -> Iterable[Kernel]:
        return table

    @hookimpl
    def tensorplug_derivatives(self) -> Iterable[Any]:
        return [
            derivative(
                "new_op.clip_smoothly",
                input=lambda g, result, bound: g * (1 - (result / bound).square()),
                bound=None,
            ),
            derivative("new_op.swish", input=swish_backward, beta=None),
            derivative(
                "new_op.row_sums",
                input=lambda g, input_shape: g.unsqueeze(-1).expand(input_shape),
            ),
            derivative("square", priority=10, input=square_backward),
        ]

    @hookimpl
    def tensorplug_tangents(self) -> Iterable[Any]:
        return [linear("new_op.row_sums", "input")]

    @hookimpl
    def tensorplug_vmap_rules(self) -> Iterable[Any]:
        return [vmap_rule("new_op.row_sums", row_sums_of_batch)]


plugin = NewOpPlugin()
