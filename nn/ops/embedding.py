"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.autograd import derivative
from tensorplug.core.operators import composite
from tensorplug.core.ops import index_select, ones, where, zeros

if TYPE_CHECKING:
    from tensorplug.core import Tensor


@composite(method=False)
def embedding_rows(
    weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Return the rows of `weight` that `indices` names.

    Parameters
    ----------
    weight : Tensor
        (rows, features).
    indices : Tensor
        Integers of any shape.
    padding_idx : int
        The row that gets no gradient; -1 for none.
    scale_grad_by_freq : bool
        Divide a row's gradient by how often it is named.

    Returns
    -------
    Tensor
        (*indices.shape, features).
    """
    flat = index_select(weight, 0, indices.reshape(-1))
    return flat.reshape(*indices._shape, weight._shape[1])


@composite(method=False)
def embedding_rows_gradient(
    g: Tensor, indices: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """Return the gradient of :func:`embedding_rows`'s weight, of which there are so many rows."""
    features = g._shape[-1]
    flat = indices.reshape(-1)
    sources = g.reshape(len(flat), features)
    if scale_grad_by_freq:
        named = ones(len(flat), dtype=g.dtype, device=g.device)
        counts = zeros(rows, dtype=g.dtype, device=g.device).scatter_add(0, flat, named)
        sources = sources / counts.gather(0, flat).unsqueeze(1)
    if padding_idx >= 0:
        sources = where((flat == padding_idx).unsqueeze(1), 0.0, sources)
    empty = zeros(rows, features, dtype=g.dtype, device=g.device)
    return empty.index_add(0, flat, sources)


DERIVATIVES = [
    derivative(
        "embedding_rows",
        weight=lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq: (
            embedding_rows_gradient(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
        ),
    )
]
