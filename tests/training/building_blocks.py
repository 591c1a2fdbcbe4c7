"""What the layers of random networks are built with: the same for tensorplug and for torch.

Each function gets the library as its first argument, and what it draws from `draw`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from random import Random
from typing import Any


def libraries() -> dict[str, Any]:
    """Return tensorplug, and torch where it is installed, by name."""
    import tensorplug

    found = {"tensorplug": tensorplug}
    try:
        import torch
    except ImportError:
        return found
    import torch.nn.utils.parametrizations
    import torch.nn.utils.prune
    import torch.utils.checkpoint

    return {**found, "torch": torch}


@functools.cache
def around(lib: Any) -> Any:
    """Return a class of modules that call a function of their input, of modules and of buffers."""

    class Around(lib.nn.Module):
        def __init__(self, function: Callable[..., Any], *parts: Any, **buffers: Any) -> None:
            super().__init__()
            self.function = function
            self.parts = lib.nn.ModuleList(parts)
            for name, value in buffers.items():
                self.register_buffer(name, value)

        def forward(self, x: Any) -> Any:
            return self.function(x, *self.parts, *self.buffers(recurse=False))

        def extra_repr(self) -> str:
            return self.function.__name__

    # Where pickle looks for it: there is one such class for each library.
    Around.__qualname__ = f"Around_{lib.__name__}"
    setattr(sys.modules[__name__], Around.__qualname__, Around)
    return Around


ACTIVATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {}) for name in (
        "CELU", "ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LogSigmoid", "Mish", "PReLU", "ReLU",
        "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh", "Tanhshrink",
    )),
    *((name, {"inplace": True}) for name in ("ELU", "LeakyReLU", "ReLU", "SiLU")),
    ("GELU", {"approximate": "tanh"}), ("RReLU", {"lower": 0.2, "upper": 0.2}),
    ("Softshrink", {"lambd": 0.1}), ("Threshold", {"threshold": 0.1, "value": 0.2}),
)  # fmt: skip


def activation(lib: Any, draw: Random) -> Any:
    """Return a module of no weights, or of one."""
    name, options = draw.choice(ACTIVATIONS)
    return getattr(lib.nn, name)(**options)


# --- functions of `around` ------------------------------------------------------------------------


def residual(x: Any, module: Any) -> Any:
    """Add what a module makes to its input."""
    return x + module(x)


def gated(x: Any, module: Any) -> Any:
    """Multiply the input by what a module makes of it."""
    return x * module(x)


def channels_last(x: Any, module: Any) -> Any:
    """Call a module on images whose channels are the last dimension."""
    return module(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def transposed(x: Any, module: Any) -> Any:
    """Call a module on sequences whose places are the last dimension."""
    return module(x.transpose(1, 2)).transpose(1, 2)


def halves_written(x: Any, module: Any) -> Any:
    """Write what a module makes of the input over a part of a copy."""
    copy = x.clone()
    copy[..., ::2] = module(x)[..., ::2] * 0.5
    return copy


def every_second_in_place(x: Any, module: Any) -> Any:
    """Change views of a result in place."""
    y = module(x)
    y[:, 1:].mul_(0.5)
    y.select(1, 0).add_(1)
    return y
