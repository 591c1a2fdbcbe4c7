"""Distances between vectors, and bounding their norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..device.dtypes import FLOATING, Number, finfo, float32
from ..dispatch.op_registry import composite, handle
from ..dispatch.out_dtypes import exact_out
from ..tensor.shapes import broadcast_shapes, normalize_dim
from .indexing.indexing import zeros_like_gradient
from .norms import norm_slopes, vector_norm
from .reductions.reductions import sum
from .rules import cast, check_tensor, in_float32
from .sorting.searching import searchsorted

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["cdist", "dist", "pdist", "renorm"]

_ARANGE = handle("arange")
_VECTOR_NORM = handle("linalg_vector_norm")
_ZEROS = handle("zeros")

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}
# From this many vectors on, a matrix product is worth its loss of precision (torch's documented
# number).
_MANY = 25


@composite()
@in_float32
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """Return the `p`-norm of ``input - other``, which broadcast.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.dist(tp.tensor([0.0, 0.0]), tp.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check_tensor(input, "dist")
    check_tensor(other, "dist", "other")
    return vector_norm("dist", input - other, p, None, False, None)


def _check_points(name: str, points: Tensor, label: str) -> None:
    check_tensor(points, name, label)
    if points.dtype.category != FLOATING:
        raise RuntimeError(
            f"{name}(): only supports floating-point dtypes, {label} got: {points.dtype}"
        )


@composite(method=False)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances of each row of `x1` to each row of `x2`.

    Parameters
    ----------
    x1 : Tensor
        Of shape (…, P, M).
    x2 : Tensor
        Of shape (…, R, M); the leading dimensions broadcast.
    p : float
        The order of the norm, from 0 to infinity.
    compute_mode : str
        Whether Euclidean distances come from a matrix product, which is fast but loses digits where
        points are close: ``"use_mm_for_euclid_dist"``, ``"donot_use_mm_for_euclid_dist"``, or by
        default if P or R is above 25.

    Returns
    -------
    Tensor
        Of shape (…, P, R).

    Notes
    -----
    Where a distance is zero, so is its gradient.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cdist(tp.tensor([[0.0, 0.0]]), tp.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    _check_points("cdist", x1, "X1")
    _check_points("cdist", x2, "X2")
    for points, label in ((x1, "X1"), (x2, "X2")):
        if len(points._shape) < 2:
            raise RuntimeError(
                f"cdist(): only supports at least 2D tensors, {label} got: {len(points._shape)}D"
            )
    columns = x1._shape[-1]
    if x2._shape[-1] != columns:
        raise RuntimeError(
            f"cdist(): X1 and X2 must have the same number of columns. X1: {columns} X2: "
            f"{x2._shape[-1]}"
        )
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"cdist(): X1 and X2 must have one dtype, got {x1.dtype} and {x2.dtype}")
    if not p >= 0:  # nan neither
        raise RuntimeError(f"cdist(): only supports non-negative p values, got {p}")
    if p > finfo(x1.dtype).max:
        p = math.inf  # as which the numbers' dtype has it
    if compute_mode is not None and compute_mode not in _MODES:
        raise ValueError(
            f"cdist(): {compute_mode!r} is not a valid value for compute_mode; use one of "
            f"{', '.join(map(repr, _MODES))}"
        )
    rows1, rows2 = x1._shape[-2], x2._shape[-2]
    shape = (*broadcast_shapes(x1._shape[:-2], x2._shape[:-2]), rows1, rows2)
    if 0 in shape or columns == 0:
        # The sum keeps the graph, with gradients of zero.
        empty = sum(x1) * 0 + sum(x2) * 0
        return empty + _ZEROS.call(shape, dtype=x1.dtype, device=x1.device)
    product = _MODES[compute_mode or "use_mm_for_euclid_dist_if_necessary"]
    if product is None:
        product = rows1 > _MANY or rows2 > _MANY
    if p == 2 and product:
        return euclidean_dist(x1, x2)
    return minkowski_dist(x1, x2, float(p))


def _canonical_pairs(x1: Any, x2: Any, p: float) -> tuple[Any, Any, float]:
    """Return the points with their leading dimensions expanded to be alike."""
    rows1, rows2 = x1._shape[-2:], x2._shape[-2:]
    if len(rows1) < 2 or len(rows2) < 2 or rows1[1] != rows2[1]:
        raise RuntimeError(
            f"minkowski_dist(): expected points of as many numbers, got {list(x1._shape)} and "
            f"{list(x2._shape)}"
        )
    batch = broadcast_shapes(x1._shape[:-2], x2._shape[:-2])
    return x1.expand((*batch, *rows1)), x2.expand((*batch, *rows2)), float(p)


@composite(rule=_canonical_pairs, method=False)
@in_float32
def minkowski_dist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """Return the `p`-norms of the differences of each row of `x1` and each row of `x2`."""
    return _of_differences(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _of_differences(difference: Tensor, p: float) -> Tensor:
    return _VECTOR_NORM.call(difference, p, (len(difference._shape) - 1,), False)


@composite(
    shapes="g(*B, P, R), x1(*B, P, M), x2(*B, R, M), result(*B, P, R)",
    method=False,
    outputs="x1, x2",
)
@in_float32
def minkowski_dist_backward(
    g: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`minkowski_dist`'s points; zero where a distance has no slope."""
    slopes = _slopes(g, x1.unsqueeze(-2) - x2.unsqueeze(-3), result, p)
    return sum(slopes, -2), -sum(slopes, -3)


def _slopes(g: Tensor, difference: Tensor, result: Tensor, p: float) -> Tensor:
    dim = (len(difference._shape) - 1,)
    return norm_slopes(g.unsqueeze(-1), difference, result.unsqueeze(-1), p, dim)


@composite(method=False)
@in_float32
def euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Return Euclidean distances by way of ``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b``."""
    squares1 = sum(x1 * x1, -1, True)
    squares2 = sum(x2 * x2, -1, True)
    products = x1 @ x2.transpose(-2, -1)
    # Rounding can leave a square slightly below zero.
    return (squares1 + squares2.transpose(-2, -1) - 2 * products).clamp(min=0).sqrt()


def _canonical_pdist(input: Any, p: float = 2.0) -> tuple[Any, float]:
    _check_points("pdist", input, "input")
    if len(input._shape) != 2:
        raise RuntimeError(f"pdist(): only supports 2D tensors, got: {len(input._shape)}D")
    if not p >= 0:  # nan neither
        raise RuntimeError(f"pdist(): only supports non-negative p values, got {p}")
    return input, float(p)


@composite(rule=_canonical_pdist, method=False)
@in_float32
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of rows, those of the first row first.

    Parameters
    ----------
    input : Tensor
        Of shape (N, M).
    p : float
        The order of the norm, from 0 to infinity.

    Returns
    -------
    Tensor
        Of shape (N * (N - 1) / 2,).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.pdist(tp.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    first, second = _pairs(input)
    return _of_differences(input.index_select(0, first) - input.index_select(0, second), p)


def _pairs(points: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of both rows of each pair."""
    rows = points._shape[0]
    # Pair k belongs to the last row whose pairs start at or before k.
    numbers = _ARANGE.call(rows, device=points.device)
    starts = numbers * (2 * rows - 1 - numbers) // 2
    pair = _ARANGE.call(rows * (rows - 1) // 2, device=points.device)
    first = searchsorted(starts, pair, right=True) - 1
    return first, pair - starts.index_select(0, first) + first + 1


def _check_pairs(g: Any, input: Any, p: float, result: Any) -> None:
    rows = input._shape[0]
    if g._shape != (rows * (rows - 1) // 2,):
        raise RuntimeError(
            f"pdist_backward(): expected a gradient per pair of {rows} rows, got shape {list(g._shape)}"
        )


@composite(shapes="g(K), input(N, M), result(K)", rule=_check_pairs, method=False)
@in_float32
def pdist_backward(g: Tensor, input: Tensor, p: float, result: Tensor) -> Tensor:
    """Return the gradient of :func:`pdist`'s points, from its distances and their gradients."""
    first, second = _pairs(input)
    difference = input.index_select(0, first) - input.index_select(0, second)
    slopes = _slopes(g, difference, result, p)
    return (
        zeros_like_gradient(g, input._shape)
        .index_add(0, first, slopes)
        .index_add(0, second, slopes, alpha=-1)
    )


@composite(rows=True, inplace=True)
def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """Return `input` with each slice along `dim` scaled down to a `p`-norm of at most `maxnorm`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.renorm(tp.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    check_tensor(input, "renorm")
    ndim = len(input._shape)
    if not p > 0:  # type: ignore[operator]  # nan neither
        raise RuntimeError(f"renorm(): non-positive-norm not supported, got p={p}")
    if not maxnorm >= 0:  # type: ignore[operator]  # nan neither
        raise RuntimeError(f"renorm(): expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm(): input needs at least 2 dimensions, got {ndim} dimensions")
    dim = normalize_dim(dim, ndim, "renorm")
    others = tuple([d for d in range(ndim) if d != dim])
    if 0 in [input._shape[d] for d in others]:
        return input.clone()
    wide = float32 if input.dtype.itemsize == 2 else None  # rounded once, as the scale
    norms = vector_norm("renorm", input, p, others, True, wide)
    # The small number keeps a slice of no length from dividing by zero; torch adds the same.
    scale = cast(maxnorm / (norms + 1e-7), input.dtype)
    return input * scale.masked_fill((norms > maxnorm).logical_not(), 1)  # NaN too


exact_out(renorm)
