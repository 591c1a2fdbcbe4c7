"""Weighted sums of rows of a matrix, which is what bilinear sampling is, and their transpose."""

from __future__ import annotations

from typing import Any

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import KernelTable, composite, derivative, dtype_named

table = KernelTable("cpu")

#: The dtypes that SciPy's sparse matrices multiply.
_SPARSE = [dtype_named("float32"), dtype_named("float64")]


@composite(name="torchvision._weighted_rows", method=False)
def weighted_rows(input: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """Return ``(input[index] * weight.unsqueeze(-1)).sum(1)``.

    Parameters
    ----------
    input : Tensor
        (rows, channels).
    index : Tensor
        (results, terms), int64: the rows that each result is a sum of.
    weight : Tensor
        (results, terms): what they are multiplied by.

    Returns
    -------
    Tensor
        (results, channels).
    """
    return (input[index] * weight.unsqueeze(-1)).sum(1)


@composite(name="torchvision._spread_rows", method=False)
def spread_rows(input: Tensor, index: Tensor, weight: Tensor, rows: int) -> Tensor:
    """Return the transpose of ``_weighted_rows``: each row added to those that it came from."""
    values = (input.unsqueeze(1) * weight.unsqueeze(-1)).flatten(0, 1)
    return input.new_zeros(rows, input.shape[1]).index_add(0, index.flatten(), values)


def _of_weight(wide: Tensor, narrow: Tensor, index: Tensor) -> Tensor:
    return (wide[index] * narrow.unsqueeze(1)).sum(-1)


@table.kernel("torchvision._weighted_rows", dtypes=_SPARSE)
def _weighted_rows_on_cpu(input: Any, index: Any, weight: Any) -> Any:
    """Multiply by a sparse matrix: nothing of the size (results, terms, channels) is written down."""
    return _matrix(index, weight, len(input)) @ input


@table.kernel("torchvision._spread_rows", dtypes=_SPARSE)
def _spread_rows_on_cpu(input: Any, index: Any, weight: Any, rows: int) -> Any:
    """Multiply by the transposed matrix."""
    return _matrix(index, weight, rows).T @ input


def _matrix(index: Any, weight: Any, rows: int) -> Any:
    import numpy as np
    from scipy.sparse import csr_array

    results, terms = index.shape
    starts = np.arange(0, results * terms + 1, terms) if terms else np.zeros(results + 1, np.int64)
    return csr_array((weight.ravel(), index.ravel(), starts), shape=(results, rows))


OPS = [weighted_rows, spread_rows]

DERIVATIVES = [
    derivative(
        "torchvision._weighted_rows",
        input=lambda g, input, index, weight: spread_rows(g, index, weight, input.shape[0]),
        index=None,
        weight=lambda g, input, index: _of_weight(input, g, index),
    ),
    derivative(
        "torchvision._spread_rows",
        input=lambda g, index, weight: weighted_rows(g, index, weight),
        index=None,
        weight=lambda g, input, index: _of_weight(g, input, index),
    ),
]


def axis_weights(at: Tensor, extent: int) -> tuple[Tensor, Tensor]:
    """Return the two indices along an axis and their weights, for points that are clamped to the axis.

    Parameters
    ----------
    at : Tensor
        (…,): coordinates. Beyond -1 and `extent` all weights are 0.
    extent : int
        How many there are along the axis.

    Returns
    -------
    index : Tensor
        (…, 2), int64.
    weight : Tensor
        (…, 2), of the dtype of `at`.
    """
    inside = (at >= -1) & (at <= extent)
    at = tp.where(inside, at, tp.zeros_like(at)).clamp(0, extent - 1)
    low = at.floor()
    share = at - low
    index = low.long()
    weight = tp.stack([1 - share, share], -1) * inside.unsqueeze(-1)
    return tp.stack([index, (index + 1).clamp(max=extent - 1)], -1), weight
