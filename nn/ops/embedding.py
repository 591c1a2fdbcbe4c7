"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autograd import derivative
from tensorplug.core.operators import composite
from tensorplug.core.ops import bincount, index_select, where, zeros

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


def _gradient(
    g: Any, weight_shape: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    flat = indices.reshape(-1)
    rows = g.reshape(-1, weight_shape[1])
    if scale_grad_by_freq:
        counts = bincount(flat, minlength=weight_shape[0])
        rows = rows / index_select(counts, 0, flat).to(g.dtype).unsqueeze(1)
    if padding_idx >= 0:
        rows = where((flat == padding_idx).unsqueeze(1), 0.0, rows)
    return zeros(weight_shape, dtype=g.dtype, device=g.device).index_add(0, flat, rows)


DERIVATIVES = [derivative("embedding_rows", weight=_gradient)]
