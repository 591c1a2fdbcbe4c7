"""Adds ``clip_smoothly``, a primitive with a derivative, and ``swish``, made of other ops."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorplug.plugin import (
    Kernel,
    KernelTable,
    Spec,
    composite,
    derivative,
    elementwise,
    hookimpl,
    primitive,
)

__all__ = ["clip_smoothly", "swish"]


@primitive("input, bound", name="new_op.clip_smoothly", pointwise=True)
def clip_smoothly(input: Any, bound: Any) -> Spec:
    """Return ``bound * tanh(input / bound)``."""
    return elementwise("clip_smoothly", input, bound, floating=True)


@composite(name="new_op.swish")
def swish(input: Any, beta: float = 1.0) -> Any:
    """Return ``input * sigmoid(beta * input)``."""
    return input * (beta * input).sigmoid()


table = KernelTable("cpu")


@table.kernel("new_op.clip_smoothly")
def clip(input, bound):
    return bound * np.tanh(input / bound)


class NewOpPlugin:
    name = "new_op"

    @hookimpl
    def tensorplug_ops(self) -> Iterable[Any]:
        return [clip_smoothly, swish]

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
            )
        ]


plugin = NewOpPlugin()
