"""Counting how often values occur."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import FLOATING, INTEGER, Number, float32, float64, int64
from ...device.scalars import fitting
from ...dispatch.op_registry import composite, handle
from ...dispatch.out_dtypes import exact_out
from ...tensor.base import TensorBase
from ...tensor.predicates import all_samples
from .. import results
from ..reductions.reductions import aminmax, sum
from ..rules import cast, check_tensor
from ..sorting.searching import searchsorted

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["bincount", "histc", "histogram", "histogramdd"]

_CLONE = handle("clone")
_LINSPACE = handle("linspace")
_ONES = handle("ones")
_WHERE = handle("where")
_ZEROS = handle("zeros")


def _canonical_bincount(
    input: Any, weights: Any = None, minlength: int = 0
) -> tuple[Tensor, Tensor | None, int]:
    check_tensor(input, "bincount")
    if input.dtype.category != INTEGER:
        raise NotImplementedError(
            f"bincount(): not implemented for {input.dtype}; it counts integers"
        )
    if minlength < 0:
        raise RuntimeError(f"bincount(): minlength should be >= 0, got {minlength}")
    if len(input._shape) != 1:
        raise RuntimeError(
            "bincount(): only supports 1-d non-negative integral inputs, got shape "
            f"{list(input._shape)}"
        )
    if weights is not None and weights._shape != input._shape:
        raise RuntimeError(
            "bincount(): weights should be 1-d and have the same length as input, got shapes "
            f"{list(weights._shape)} and {list(input._shape)}"
        )
    return input, weights, minlength


@composite(rule=_canonical_bincount)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each number from 0 to the greatest occurs.

    Parameters
    ----------
    input : Tensor
        One-dimensional, of nonnegative integers.
    weights : Tensor, optional
        Count each element this much. The result is float32 if these are, else float64.
    minlength : int
        The least number of bins.

    Raises
    ------
    RuntimeError
        For negative numbers, or a weight tensor of another length.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.bincount(tp.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    bins = minlength
    if input._shape[0]:
        least, greatest = aminmax(all_samples(input))
        if least.item() < 0:
            raise RuntimeError(
                f"bincount(): only supports 1-d non-negative integral inputs, got {least.item()}"
            )
        bins = max(bins, int(greatest.item()) + 1)
    if weights is None or not input._shape[0]:  # of nothing, counts, as in torch
        counted = _ONES.call(input._shape, dtype=int64, device=input.device)
    else:
        counted = weights if weights.dtype is float32 else cast(weights, float64)
    empty = _ZEROS.call(bins, dtype=counted.dtype, device=input.device)
    return empty.scatter_add(0, cast(input, int64), counted)


def _finite_range(
    name: str, values: Tensor, low: Any, high: Any, margin: float
) -> tuple[float, float]:
    """Return the range of the bins: the one asked for, or that of the values.

    A range of no width is widened by `margin` on each side.
    """
    if low is None or high is None:
        low, high = 0.0, 1.0
        if values.numel():
            low, high = (bound.item() for bound in aminmax(values))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}(): range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"{name}(): max must be larger than min: min should not exceed max, but got min {low} max {high}"
        )
    if low == high:
        low, high = low - margin, high + margin
    return low, high


def _check_bins(name: str, bins: Any) -> None:
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")


def _canonical_grid(points: Any, edges: Any, weight: Any = None) -> tuple[Any, ...]:
    check_tensor(points, "grid_counts", "points")
    others = [*edges, *([] if weight is None else [weight])]
    for other in others:
        check_tensor(other, "grid_counts", "edges and weight")
    shapes = [other._shape for other in others]
    if (
        points.ndim != 2
        or len(edges) != points._shape[1]
        or any([len(shape) != 1 or not shape[0] for shape in shapes[: len(edges)]])
        or (weight is not None and weight._shape != points._shape[:1])
        or any([other.dtype is not points.dtype for other in others])
        or any([other.device != points.device for other in others])
    ):
        raise RuntimeError(
            "grid_counts(): expected points in rows, a row of edges for each of their numbers, "
            f"and a weight for each, all of one dtype and device, got {list(points.shape)} and {shapes}"
        )
    if len(edges) > _MOST_DIMS or math.prod([edge._shape[0] - 1 for edge in edges]) >= 2**63:
        raise RuntimeError(
            f"histogramdd(): the bins of {len(edges)} dimensions are too many for a tensor; join some, or "
            "take fewer columns"
        )
    return points, edges, weight


_MOST_DIMS = 64  # of an array


@composite(rule=_canonical_grid, method=False)
def grid_counts(points: Tensor, edges: Sequence[Tensor], weight: Tensor | None = None) -> Tensor:
    """Return the weight of points, in rows, in each cell of the grid that edges span; the last bin is closed.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.ops.grid_counts(tp.tensor([[0.5], [2.0]]), [tp.tensor([0.0, 1.0, 2.0])])
    tensor([1., 1.])
    """
    shape = [edge._shape[0] - 1 for edge in edges]
    if not shape:  # a point without coordinates is in no cell, as in torch
        return _ZEROS.call(shape, dtype=points.dtype, device=points.device)
    cell: Any = 0
    inside: Any = True
    for column, edge, size in zip(points.unbind(1), edges, shape, strict=True):
        value = column.contiguous()
        index = searchsorted(edge, value, right=True) - 1
        index = _WHERE.call(value == edge.select(0, size), size - 1, index)
        inside = (index >= 0) & (index < size) & inside
        cell = cell * size + index
    dtype, device = points.dtype, points.device
    ones_or_weight: Any = weight
    if weight is None:
        ones_or_weight = _ONES.call(points._shape[0], dtype=dtype, device=device)
    counted = ones_or_weight.masked_fill(~inside, 0)
    empty = _ZEROS.call(math.prod(shape), dtype=dtype, device=device)
    if not math.prod(shape):
        return empty.reshape(shape)
    return empty.scatter_add(0, cell.masked_fill(~inside, 0), counted).reshape(shape)


def _check_values(name: str, input: Tensor) -> None:
    check_tensor(input, name)
    if input.dtype.category != FLOATING:
        raise NotImplementedError(f"{name}(): not implemented for {input.dtype}; convert the input")


@composite()
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Return how many elements fall into each of `bins` equal intervals between `min` and `max`.

    Elements outside, and NaN, are not counted. If both bounds are the same, those of the data count.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.histc(tp.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    _check_values("histc", input)
    _check_bins("histc", bins)
    wide = input if input.dtype in (float32, float64) else cast(input, float32)
    flat = wide.detach().reshape(-1)
    if input.dtype.category == FLOATING:
        min, max = fitting(min, input.dtype), fitting(max, input.dtype)
    from_data = min == max
    low, high = _finite_range(
        "histc", flat, None if from_data else min, None if from_data else max, 1.0
    )
    edges = _LINSPACE.call(low, high, bins + 1, dtype=flat.dtype, device=flat.device)
    return cast(histogram_counts(flat, edges), input.dtype)


def _histogram_counts_rule(values: Any, edges: Any) -> tuple[Any, Any]:
    check_tensor(values, "histogram_counts", "values")
    check_tensor(edges, "histogram_counts", "edges")
    return values, edges


@composite(method=False, rule=_histogram_counts_rule)
def histogram_counts(values: Tensor, edges: Tensor) -> Tensor:
    """Return how many of 1-d `values` stand between edges of their dtype, evenly far apart."""
    return grid_counts(values.unsqueeze(1), [edges])


def _edges(
    name: str, values: Tensor, bins: Any, bounds: tuple[Number | None, Number | None]
) -> Tensor:
    if isinstance(bins, TensorBase):
        if bins._key.dtype is not values.dtype:
            raise RuntimeError(
                f"{name}(): input tensor and bins tensors should have the same dtype, but got input "
                f"of {values.dtype} and bins of {bins._key.dtype}"
            )
        if len(bins._shape) != 1:
            raise RuntimeError(
                f"{name}(): bins tensor should have one dimension, but got {len(bins._shape)} "
                "dimensions in the bins tensor"
            )
        if not bins._shape[0]:
            raise RuntimeError(
                f"{name}(): bins tensor should have at least 1 element, but got 0 elements in it"
            )
        return bins  # type: ignore[return-value]
    _check_bins(name, bins)
    low, high = _finite_range(name, values, *bounds, 0.5)
    return _LINSPACE.call(low, high, bins + 1, dtype=values.dtype, device=values.device)


def _density(hist: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Return the histogram divided by its total weight and by the volume of each cell."""
    hist = hist / sum(hist)
    for dim, edge in enumerate(edges):
        width = edge.narrow(0, 1, edge._shape[0] - 1) - edge.narrow(0, 0, edge._shape[0] - 1)
        shape = [1] * len(edges)
        shape[dim] = -1
        hist = hist / width.reshape(shape)
    return hist


def _check_weight(name: str, input: Tensor, weight: Tensor | None, shape: Any) -> None:
    if weight is None:
        return
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): if weight tensor is provided, input tensor and weight tensor should have "
            f"the same dtype, but got input of {input.dtype} and weight of {weight.dtype}"
        )
    if weight._shape != tuple(shape):
        raise RuntimeError(
            f"{name}(): if weight tensor is provided it should have the same shape as the input tensor"
            f"{'' if name == 'histogram' else ' excluding its innermost dimension'}, "
            f"{list(shape)}, but got weight with shape {list(weight._shape)}"
        )


@composite(outputs="hist, bin_edges")
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> results.histogram:
    """Return how many elements fall into each bin, and the edges of the bins.

    Parameters
    ----------
    input : Tensor
        Floating-point, of any shape.
    bins : int or Tensor
        The number of equal bins, or the ascending edges.
    range : (float, float), optional
        The outermost edges for a number of bins; by default those of the data.
    weight : Tensor, optional
        Count each element this much.
    density : bool
        Divide so that the integral over all bins is one.

    Returns
    -------
    (hist, bin_edges) : named tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.histogram(tp.tensor([1.0, 2.0, 1.0]), 2, range=(0.0, 4.0)).hist
    tensor([2., 1.])
    """
    _check_values("histogram", input)
    _check_weight("histogram", input, weight, input._shape)
    flat = input.detach().reshape(-1)
    if isinstance(bins, TensorBase):
        bins = _CLONE.call(bins)  # it becomes a result
    if range is not None and len(range) != 2:
        raise RuntimeError(f"histogram(): range should have 2 elements, but got {len(range)}")
    edges = _edges("histogram", flat, bins, (None, None) if range is None else tuple(range))  # type: ignore[arg-type]
    if weight is None and not isinstance(bins, TensorBase):
        hist = histogram_counts(flat, edges)
    else:
        hist = grid_counts(
            flat.unsqueeze(1), [edges], None if weight is None else weight.reshape(-1)
        )
    return results.histogram(_density(hist, [edges]) if density else hist, edges)


@composite(outputs="*", method=False)
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> results.histogramdd:
    """Return how many points fall into each cell of a grid, and the edges along each coordinate.

    Parameters
    ----------
    input : Tensor
        Floating-point; the last dimension holds the coordinates of a point.
    bins : int, sequence of int or sequence of Tensor
        The number of equal bins, for all coordinates or for each, or the ascending edges of each.
    range : sequence of float, optional
        The leftmost and rightmost edge of each coordinate, one after the other.
    weight : Tensor, optional
        Count each point this much.
    density : bool
        Divide so that the integral over the grid is one.

    Returns
    -------
    (hist, bin_edges) : named tuple of Tensor and tuple of Tensor

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.histogramdd(tp.tensor([[1.0, 2.0], [3.0, 4.0]]), 2).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    _check_values("histogramdd", input)
    if len(input._shape) < 2:
        raise RuntimeError(
            f"histogramdd(): input tensor should have at least 2 dimensions, got shape "
            f"{list(input._shape)}"
        )
    size = input._shape[-1]
    _check_weight("histogramdd", input, weight, input._shape[:-1])
    each = [bins] * size if isinstance(bins, int) else list(bins)
    if len(each) != size:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input. Got "
            f"{len(each)} and {size}"
        )
    if range is not None and len(range) != 2 * size:
        raise RuntimeError(
            f"histogramdd(): range needs two bounds for each of {size} dimensions, got {len(range)}"
        )
    points = input.detach().reshape(math.prod(input._shape[:-1]), size)
    limits: list[Any] = [(None, None)] * size
    if range is not None:
        limits = [tuple(range[2 * d : 2 * d + 2]) for d in builtins.range(size)]
    elif points.numel():
        limits = list(zip(*[bounds.tolist() for bounds in aminmax(points, dim=0)], strict=True))
    edges = [
        _edges("histogramdd", points.select(1, d), each[d], limits[d]) for d in builtins.range(size)
    ]
    hist = grid_counts(points, edges, None if weight is None else weight.reshape(-1))
    return results.histogramdd(_density(hist, edges) if density else hist, tuple(edges))


exact_out(histc)
exact_out(
    histogram,
    said="{name}(): input tensor and {output} tensor should have the same dtype, but got input "
    "{words[0]} and {output} {words[1]}",
)
