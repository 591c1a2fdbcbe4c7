"""The factors of a step: plain numbers, or tensors of one number where a device counts the steps.

With ``capturable=True`` the count of steps, and perhaps the learning rate, are 0-d tensors on the
parameters' device. What is computed from them stays there, so that a graph that was captured computes it
anew at each replay.
"""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.devices import CPU
from tensorplug.core.dtypes import float32
from tensorplug.core.ops import full

from .state import count_step, number, scalar

Amount = float | Tensor


def is_there(value: Any) -> bool:
    """Return whether a number is a tensor on a device that the host would have to wait for."""
    return isinstance(value, Tensor) and value.device is not CPU


def counts_there(parameter: Tensor, group: dict[str, Any]) -> bool:
    """Return whether the steps of a parameter are counted on its device."""
    return bool(group["capturable"]) and parameter.device is not CPU


def started(parameter: Tensor, group: dict[str, Any], value: float = 0.0) -> Tensor:
    """Return a new number for a parameter's state, where its steps are counted."""
    return scalar(value, parameter.device if counts_there(parameter, group) else CPU)


def counted(state: dict[str, Any], parameter: Tensor, group: dict[str, Any]) -> Amount:
    """Add one to ``state["step"]`` and return it; a checkpoint may have left it on another device."""
    if not counts_there(parameter, group):
        return count_step(state)
    return kept_there(state, "step", parameter).add_(1)


def kept_there(state: dict[str, Any], name: str, parameter: Tensor) -> Tensor:
    """Return a number of the state as a tensor on its parameter's device."""
    value = state[name]
    if not isinstance(value, Tensor) or value.device is not parameter.device:
        state[name] = full((), number(value), dtype=float32, device=parameter.device)
    kept: Tensor = state[name]
    return kept


def rate(parameter: Tensor, group: dict[str, Any]) -> Amount:
    """Return the learning rate; as the tensor it is where steps are counted on its device."""
    lr: Amount = group["lr"]
    return lr if counts_there(parameter, group) and is_there(lr) else number(lr)


def correction(beta: float, step: Amount) -> Amount:
    """Return 1 - beta**step."""
    if not isinstance(step, Tensor):
        return 1 - beta**step
    # The difference would lose the digits of a beta near 1.
    return (step * math.log(beta)).expm1().neg() if beta > 0 else step.clamp(max=1)


def root(value: Amount) -> Amount:
    """Return the square root."""
    return value.sqrt() if isinstance(value, Tensor) else value**0.5


def add(parameter: Tensor, direction: Tensor, factor: Amount) -> None:
    """Add a multiple of a tensor."""
    if isinstance(factor, Tensor):
        parameter.add_(direction * factor)
    else:
        parameter.add_(direction, alpha=factor)


def add_quotient(parameter: Tensor, numerator: Tensor, denominator: Tensor, factor: Amount) -> None:
    """Add a multiple of a quotient."""
    if isinstance(factor, Tensor):
        parameter.add_(numerator / denominator * factor)
    else:
        parameter.addcdiv_(numerator, denominator, value=factor)
