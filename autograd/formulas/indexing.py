"""Derivatives of reading and writing at positions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.creation import fill_new
from tensorplug.core.ops.indexing import basic_index, index, index_put, place

from ..derivatives import derivative, on_tensors
from .shape import sum_to_shape


def zeros(g: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of a shape, like `g` otherwise: for every sample, inside of vmap."""
    if g._batched:
        return g.new_zeros(shape)
    return fill_new(shape, 0, g.dtype, g.device)


@on_tensors
def _spread(g: Any, input_shape: tuple[int, ...], indices: list[Any]) -> Any:
    return zeros(g, input_shape).index_put_(indices, g, True)


# Keys differ from call to call (a loop over time steps): noting a program for each would cost more.
@on_tensors
def _place(g: Any, input_shape: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    return place(g, input_shape, key)


@on_tensors
def _placed(g: Any, key: tuple[Any, ...]) -> Any:
    return basic_index(g, key)


DERIVATIVES = [
    derivative("basic_index", input=_place),
    derivative("index", input=_spread),
    derivative(
        "index_put",
        input=lambda g, indices, accumulate: (
            g if accumulate else index_put(g, indices, zeros(g, ()))
        ),
        values=lambda g, indices, values_shape: sum_to_shape(index(g, indices), values_shape),
    ),
    derivative("place", input=_placed),
]
