"""Activations, and the products of a gradient with their derivatives, each in one pass."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import KernelTable

from .. import pointwise
from .._dtypes import FLOATS

_PLAIN = ("silu", "log_sigmoid", "mish", "hardsigmoid", "hardswish")
_WITH_NUMBERS = ("leaky_relu", "elu", "softplus", "hardtanh", "threshold")

#: The loops that serve nn's ops.
NAMES = frozenset(
    [
        *_PLAIN,
        *_WITH_NUMBERS,
        "gelu",
        "gelu_tanh",
        *[name for name in pointwise.names("binary") if name.endswith("_gradient")],
    ]
)


def build(table: KernelTable) -> None:
    """Add this family's kernels to `table`."""
    for name in _PLAIN:
        table.add(name, pointwise.Unary(name).call, dtypes=FLOATS)
    for name in _WITH_NUMBERS:
        table.add(name, _with_numbers(name), dtypes=FLOATS)
    forms = {"none": pointwise.Unary("gelu").call, "tanh": pointwise.Unary("gelu_tanh").call}
    table.add("gelu", lambda input, approximate: forms[approximate](input), dtypes=FLOATS)


def _with_numbers(name: str) -> Any:
    """Return a kernel of (input, numbers…), which keeps the loop of the numbers it had last."""
    loops: dict[tuple[float, ...], Any] = {}

    def kernel(input: Any, *numbers: float) -> Any:
        loop = loops.get(numbers)
        if loop is None:
            if len(loops) > 100:
                loops.clear()
            loop = loops[numbers] = pointwise.Unary(name, None, numbers).call
        return loop(input)

    return kernel
