"""Derivatives of reading and writing at positions."""

from __future__ import annotations

from typing import Any

from tensorplug.core.ops.indexing.index_select import index_select
from tensorplug.core.ops.indexing.indexing import (
    basic_index,
    index,
    index_backward,
    index_put,
    place,
    zeros_like_gradient,
)

from ..derivatives import derivative, on_tensors
from .shape import sum_to_shape


@on_tensors
def _spread(g: Any, input_shape: tuple[int, ...], indices: list[Any]) -> Any:
    return index_backward(g, input_shape, indices)


@on_tensors
def _spread_slices(g: Any, input_shape: tuple[int, ...], dim: int, index: Any) -> Any:
    return index_backward(g, input_shape, [*[None] * dim, index])


@on_tensors
def _kept(g: Any, dim: int, index: Any) -> Any:
    """Return the gradient of what slices were written into."""
    return index_put(g, [*[None] * dim, index], zeros_like_gradient(g, ()))


def _selected(g: Any, dim: int, index: Any) -> Any:
    return index_select(g, dim, index)


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
    derivative("index_backward", g=on_tensors(lambda g, indices: index(g, indices))),
    derivative(
        "index_put",
        input=lambda g, indices, accumulate: (
            g if accumulate else index_put(g, indices, zeros_like_gradient(g, ()))
        ),
        values=lambda g, indices, values_shape: sum_to_shape(index(g, indices), values_shape),
    ),
    derivative("index_select", input=_spread_slices),
    derivative("index_add", input=lambda g: g, source=_selected),
    derivative("index_copy", input=_kept, source=_selected),
    derivative("place", input=_placed),
]
