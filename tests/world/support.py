"""What the programs of this folder share: the same weights and inputs on both sides, and short numbers of results.

It imports torch, which is torch itself or tensorplug's, whichever the process has.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Program = Callable[[], dict[str, Any]]


class Programs:
    """The programs of a library, in order: functions without arguments that return numbers."""

    def __init__(self) -> None:
        self.functions: dict[str, Program] = {}

    def __call__(self, function: Program) -> Program:
        """Add one function, under its name."""
        self.functions[function.__name__] = function
        return function

    def add(self, name: str, function: Program) -> None:
        """Add one under another name."""
        self.functions[name] = function


def random(*shape: int, seed: str | int = 0, dtype: str = "float32") -> Any:
    """Return normal numbers that both sides have alike."""
    rng = np.random.default_rng(zlib.crc32(str(seed).encode()))
    return torch.from_numpy(rng.standard_normal(shape).astype(dtype))


def integers(*shape: int, high: int, low: int = 0, seed: str | int = 0) -> Any:
    """Return integers that both sides have alike."""
    rng = np.random.default_rng(zlib.crc32(str(seed).encode()))
    return torch.from_numpy(rng.integers(low, high, shape))


def fill(module: Any, scale: float = 1.0) -> Any:
    """Give a module weights that follow from the names and shapes of its state alone; return it."""
    state = module.state_dict()
    shared: dict[int, Any] = {}
    with torch.no_grad():
        for name, value in state.items():
            if not value.is_floating_point() or not value.numel() or id(value) in shared:
                continue
            shared[id(value)] = value
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            numbers = np.asarray(rng.standard_normal(tuple(value.shape)))
            last = name.rpartition(".")[2]
            if "var" in last:
                numbers = 1 + 0.1 * np.abs(numbers)
            elif value.ndim < 2:
                numbers = 0.1 * numbers + (1 if last in {"weight", "gamma"} else 0)
            else:
                numbers *= scale / math.sqrt(max(1, math.prod(value.shape[1:])))
            value.copy_(torch.from_numpy(np.asarray(numbers, "float32")).to(value.dtype))
    return module


def short(value: Any) -> Any:
    """Return a tensor's shape and a few numbers of its elements; other values as they are."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_sparse if hasattr(value, "is_sparse") else False:
            value = value.to_dense()
        if value.is_complex():
            value = torch.view_as_real(value)
        if not value.is_floating_point():
            flat = value.reshape(-1)
            return {"shape": list(value.shape), "first": flat[:32].tolist(), "sum": int(flat.sum())}
        flat = value.double().reshape(-1)
        weights = torch.from_numpy(np.cos(np.arange(flat.numel(), dtype="float64")))
        return {
            "shape": list(value.shape),
            "first": flat[:4].tolist(),
            "norm": float((flat * flat).sum().sqrt()),
            "weighted": float((flat * weights).sum()),
        }
    if isinstance(value, dict):
        return {str(key): short(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [short(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def norm(tensors: Any) -> float:
    """Return the norm of all of some tensors together."""
    return math.sqrt(sum(float((t.detach().double() ** 2).sum()) for t in tensors if t is not None))


def gradients(module: Any) -> dict[str, Any]:
    """Return how many parameters have a gradient, and the norm of all of it."""
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    return {"count": len(grads), "norm": norm(grads)}


def backward(loss: Any, module: Any) -> dict[str, Any]:
    """Go backward; return the loss, and numbers of the gradients."""
    loss.backward()
    return {"loss": float(loss.detach()), "gradients": gradients(module)}


def train(module: Any, loss: Callable[[], Any], optimizer: Any, steps: int = 3) -> dict[str, Any]:
    """Take some steps; return their losses, and a number of the parameters at the end."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return {"losses": losses, "parameters": norm(module.parameters())}
