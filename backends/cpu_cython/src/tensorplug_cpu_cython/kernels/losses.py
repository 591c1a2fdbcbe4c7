"""Kernels of the losses of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable

from .. import losses
from .._dtypes import FLOATS


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name, logs in (("cross_entropy", False), ("nll_loss", True)):
        loss, gradient = _of(logs)
        table.add(name, loss, dtypes=FLOATS)
        table.add(f"{name}_backward", gradient, dtypes=FLOATS)


def _of(logs: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the kernels of the loss of scores, or of log probabilities, and of its gradient."""

    def loss(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
        return losses.cross_entropy(input, target, weight, ignore_index, reduction, logs, _reduced)

    def gradient(
        g: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
    ) -> Any:
        return losses.cross_entropy_gradient(
            g, input, target, weight, ignore_index, reduction, logs, _no_gradient
        )

    return loss, gradient


# For what the compiled ones decline: no samples, no classes, and classes that do not exist.


def _reduced(input: Any, target: Any, _: Any, ignore_index: int, reduction: str) -> Any:
    classes = input.shape[1]
    wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
    if wrong.any():
        raise IndexError(
            f"Target {target[wrong].reshape(-1)[0]} is out of bounds. There are {classes} classes"
        )
    if reduction == "none":
        return np.zeros(target.shape, input.dtype)
    return np.array(np.nan if reduction == "mean" else 0, input.dtype)


def _no_gradient(_: Any, input: Any, *__: Any) -> Any:
    return np.zeros(input.shape, input.dtype)
