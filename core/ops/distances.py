"""Distances between vectors, and bounding their norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..device.dtypes import FLOATING, Number
from ..dispatch.op_registry import composite, handle
from ..dispatch.out_variants import exact_out
from ..tensor.shapes import broadcast_shapes, normalize_dim
from .norms import vector_norm
from .reductions.reductions import sum
from .rules import cast, check_tensor
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
    if p < 0:
        raise RuntimeError(f"cdist(): only supports non-negative p values, got {p}")
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
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return _VECTOR_NORM.call(difference, float(p), (len(difference._shape) - 1,), False)


@composite(method=False)
def euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Return Euclidean distances by way of ``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b``."""
    squares1 = sum(x1 * x1, -1, True)
    squares2 = sum(x2 * x2, -1, True)
    products = x1 @ x2.transpose(-2, -1)
    # Rounding can leave a square slightly below zero.
    return (squares1 + squares2.transpose(-2, -1) - 2 * products).clamp(min=0).sqrt()


@composite(method=False)
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
    _check_points("pdist", input, "input")
    if len(input._shape) != 2:
        raise RuntimeError(f"pdist(): only supports 2D tensors, got: {len(input._shape)}D")
    if p < 0:
        raise RuntimeError(f"pdist(): only supports non-negative p values, got {p}")
    rows = input._shape[0]
    # Pair k belongs to the last row whose pairs start at or before k.
    numbers = _ARANGE.call(rows, device=input.device)
    starts = numbers * (2 * rows - 1 - numbers) // 2
    pair = _ARANGE.call(rows * (rows - 1) // 2, device=input.device)
    first = searchsorted(starts, pair, right=True) - 1
    second = pair - starts.index_select(0, first) + first + 1
    difference = input.index_select(0, first) - input.index_select(0, second)
    return _VECTOR_NORM.call(difference, float(p), (1,), False)


@composite(inplace=True)
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
    if p <= 0:  # type: ignore[operator]
        raise RuntimeError(f"renorm(): non-positive-norm not supported, got p={p}")
    if maxnorm < 0:  # type: ignore[operator]
        raise RuntimeError(f"renorm(): expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm(): input needs at least 2 dimensions, got {ndim} dimensions")
    dim = normalize_dim(dim, ndim, "renorm")
    others = tuple([d for d in range(ndim) if d != dim])
    if 0 in [input._shape[d] for d in others]:
        return input.clone()
    norms = vector_norm("renorm", input, p, others, True, None)
    # The small number keeps a slice of no length from dividing by zero; torch adds the same.
    scale = cast(maxnorm / (norms + 1e-7), input.dtype)
    return input * scale.masked_fill(norms <= maxnorm, 1)


exact_out(renorm)
