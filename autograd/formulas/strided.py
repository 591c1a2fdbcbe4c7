"""Derivatives of views by strides, and of splitting."""

from __future__ import annotations

from typing import Any

from tensorplug.core.dispatch.op_registry import handle
from tensorplug.core.ops.indexing.indexing import (
    basic_index,
    place,
    select,
    zeros_like_gradient as zeros,
)
from tensorplug.core.ops.strided import (
    as_strided,
    as_strided_scatter,
    diag_embed,
    diagonal,
    diagonal_scatter,
    select_scatter,
    slice_scatter,
    view_as_complex,
    view_as_real,
)
from tensorplug.core.ops.strided.strided import as_strided_backward

from ..engine.derivatives import derivative, not_differentiable, on_tensors
from ..forward.tangents import linear, tangent
from ..vmap.vmap_rules import shared_rule

_ARANGE = handle("arange")


@on_tensors
def _unfold(g: Any, input_shape: tuple[int, ...], dimension: int, size: int, step: int) -> Any:
    if not input_shape:
        return g.sum()
    windows = g.shape[dimension]
    starts = _ARANGE.call(windows, device=g.device) * step
    indices = starts.reshape(windows, 1) + _ARANGE.call(size, device=g.device)
    # Windows and the indices in them, side by side in the dimension that they were taken from.
    merged = g.movedim(-1, dimension + 1).flatten(dimension, dimension + 1)
    return zeros(g, input_shape).index_add(dimension, indices.flatten(), merged)


def _diagonal(g: Any, input_shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    square = diag_embed(g, offset, dim1, dim2)
    side = g._shape[-1] + abs(offset)
    if input_shape[dim1] == input_shape[dim2] == side:
        return square
    key = [slice(None)] * len(input_shape)
    for dim in (dim1, dim2):
        size = min(side, input_shape[dim])
        square = square.narrow(dim, 0, size)
        key[dim] = slice(0, size, 1)
    return place(square, input_shape, tuple(key))


@on_tensors
def _strided_rest(g: Any, src_shape: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    return as_strided_scatter(g.contiguous(), zeros(g, src_shape), size, stride, storage_offset)


@on_tensors
def _strided_source(g: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    g = g.contiguous()  # which may begin anywhere in its storage
    return as_strided(g, size, stride, storage_offset + g.storage_offset())


DERIVATIVES = [
    derivative(
        "as_strided",
        input=lambda g, input_shape, size, stride, storage_offset, layout: as_strided_backward(
            g, input_shape, size, stride, storage_offset, layout
        ),
    ),
    derivative("diagonal", input=_diagonal),
    derivative("diag_embed", input=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2)),
    derivative("unfold", input=_unfold),
    derivative("view_as_real", input=lambda g: view_as_complex(g.contiguous())),
    derivative("view_as_complex", input=lambda g: view_as_real(g)),
    *not_differentiable("view_dtype"),
    derivative(
        "select_scatter",
        input=lambda g, src_shape, dim, index: select_scatter(g, zeros(g, src_shape), dim, index),
        src=lambda g, dim, index: select(g, dim, index),
    ),
    derivative(
        "slice_scatter",
        input=lambda g, src_shape, dim, start, end, step: slice_scatter(
            g, zeros(g, src_shape), dim, start, end, step
        ),
        src=lambda g, dim, start, end, step: basic_index(
            g, (*(slice(None),) * dim, slice(start, end, step))
        ),
    ),
    derivative("as_strided_scatter", input=_strided_rest, src=_strided_source),
    derivative(
        "diagonal_scatter",
        input=lambda g, src_shape, offset, dim1, dim2: diagonal_scatter(
            g, zeros(g, src_shape), offset, dim1, dim2
        ),
        src=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
    ),
]


TANGENTS = [
    # copies, views, rearrangements
    linear("as_strided", "input"),
    linear("diagonal", "input"),
    linear("diag_embed", "input"),
    linear("unfold", "input"),
    # The tangent may lie in memory in another way.
    tangent("view_as_complex", input=lambda t: view_as_complex(t.contiguous())),
    linear("view_as_real", "input"),
    linear("select_scatter", "input", "src"),
    linear("slice_scatter", "input", "src"),
    linear("diagonal_scatter", "input", "src"),
    linear("as_strided_scatter", "input", "src"),
]


VMAP_RULES = [
    shared_rule("as_is", "view_as_real", "view_dtype"),
    shared_rule("view_as_complex", "view_as_complex"),
    shared_rule("as_strided", "as_strided"),
    shared_rule("unfold", "unfold"),
    shared_rule("diagonal", "diagonal"),
    shared_rule("diag_embed", "diag_embed"),
    # These write into what they made.
    shared_rule(
        "first_batched", "as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"
    ),
]
