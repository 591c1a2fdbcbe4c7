"""The numbers of a step: plain ones, or 0-d tensors where a device counts the steps.

With ``capturable=True`` the count of steps, and perhaps the learning rate, are 0-d tensors on the
parameters' device. What is computed from them stays there, so that a graph that was captured computes it
anew at each replay. In what follows `device` is where the steps are counted: the CPU means plain numbers.
"""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.device import CPU, Device
from tensorplug.core.device.dtypes import float32
from tensorplug.core.ops import full

from .state import count_step, number

Scalar = float | Tensor


def on_device(value: Any) -> bool:
    """Return whether a number is a tensor on a device that the host would have to wait for."""
    return isinstance(value, Tensor) and value.device is not CPU


def counted(state: dict[str, Any], device: Device) -> Scalar:
    """Add one to ``state["step"]`` and return it."""
    return count_step(state) if device is CPU else moved(state, "step", device).add_(1)


def multiplied(state: dict[str, Any], name: str, factor: Any, device: Device) -> Scalar:
    """Multiply a number of the state and return it; as a tensor where a gradient leads through it."""
    if device is not CPU:
        return moved(state, name, device).mul_(factor)
    state[name] *= factor
    value = state[name]
    return value if isinstance(value, Tensor) and value.requires_grad else number(value)


def read(state: dict[str, Any], name: str, device: Device) -> Scalar:
    """Return a number of the state."""
    return number(state[name]) if device is CPU else moved(state, name, device)


def moved(state: dict[str, Any], name: str, device: Device) -> Tensor:
    """Return a number of the state as a tensor on a device; a checkpoint may have left it on another."""
    value = state[name]
    if not isinstance(value, Tensor) or value.device is not device:
        state[name] = full((), number(value), dtype=float32, device=device)
    result: Tensor = state[name]
    return result


def learning_rate(group: dict[str, Any], device: Device) -> Scalar:
    """Return the learning rate; the tensor it is where steps are counted on its device or derived by it."""
    lr: Scalar = group["lr"]
    derived = group.get("differentiable", False) and isinstance(lr, Tensor) and lr.requires_grad
    return lr if derived or (device is not CPU and on_device(lr)) else number(lr)


def at_least(value: Scalar, least: float) -> Scalar:
    """Return the larger one."""
    return value.clamp(min=least) if isinstance(value, Tensor) else max(least, value)


def correction(beta: float, step: Scalar) -> Scalar:
    """Return 1 - beta**step."""
    if not isinstance(step, Tensor):
        return 1 - beta**step
    # The difference would lose the digits of a beta near 1.
    return (step * math.log(beta)).expm1().neg() if beta > 0 else step.clamp(max=1)


def root(value: Scalar) -> Scalar:
    """Return the square root."""
    return value.sqrt() if isinstance(value, Tensor) else value**0.5


def add(parameter: Tensor, direction: Tensor, factor: Scalar) -> None:
    """Add a multiple of a tensor."""
    if isinstance(factor, Tensor):
        parameter.add_(direction * factor)
    else:
        parameter.add_(direction, alpha=factor)


def add_quotient(parameter: Tensor, numerator: Tensor, denominator: Tensor, factor: Scalar) -> None:
    """Add a multiple of a quotient."""
    if isinstance(factor, Tensor):
        parameter.add_(numerator / denominator * factor)
    else:
        parameter.addcdiv_(numerator, denominator, value=factor)
