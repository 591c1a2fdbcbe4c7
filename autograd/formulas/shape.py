"""Derivatives of views and other changes of shape."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.creation.creation import fill_new
from tensorplug.core.ops.joining.joining import cat, stack
from tensorplug.core.ops.rules import cast

from ..engine.derivatives import derivative
from ..forward.tangents import linear
from ..vmap.vmap_rules import shared_rule


def fitted(gradient: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the gradient of a composite's argument with broadcasting and promotion undone.

    Of a primitive the engine does this.
    """
    return cast(sum_to_shape(gradient, shape), dtype)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def sum_to_shape(g: Any, shape: tuple[int, ...]) -> Any:
    """Return `g` summed over the dimensions along which `shape` was expanded to its own."""
    lead = len(g.shape) - len(shape)
    dims = [d for d in range(len(g.shape)) if d < lead or (shape[d - lead] == 1 != g.shape[d])]
    if not dims and not lead:
        return g
    return (g.sum(dims) if dims else g).reshape(shape)


DERIVATIVES = [
    derivative("expand", input=lambda g, input_shape: sum_to_shape(g, input_shape)),
    derivative("permute", input=lambda g, dims: g.permute(_inverse(dims))),
    derivative("view", input=lambda g, input_shape: g.reshape(input_shape)),
    derivative(
        "unbind",
        input=lambda gs, input_shape, input_dtype, input_device, dim: (
            stack(gs, dim) if gs else fill_new(input_shape, 0, input_dtype, input_device)
        ),
    ),
    derivative("split_with_sizes", input=lambda gs, dim: cat(gs, dim)),
]


TANGENTS = [
    linear("expand", "input"),
    linear("permute", "input"),
    linear("view", "input"),
]


VMAP_RULES = [
    shared_rule("view", "view"),
    shared_rule("permute", "permute"),
    shared_rule("expand", "expand"),
]
