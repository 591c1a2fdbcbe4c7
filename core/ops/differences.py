"""Differences and integrals along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..device.dtypes import BOOL, FLOATING, INTEGER, Number, int64, promote_types
from ..dispatch.op_registry import composite, handle
from ..dispatch.out_dtypes import exact_out
from ..tensor.base import TensorBase
from ..tensor.shapes import existing_dim, normalize_dim, normalize_dims
from .reductions.reductions import sum
from .rules import cast, check_tensor, rounded_once, to_floating

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid", "trapz"]

_CAT = handle("cat")


def _neighbours(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the elements that have one before them along `dim`, and those that have one behind."""
    size = max(input._shape[dim] - 1, 0)
    return input.narrow(dim, min(1, input._shape[dim]), size), input.narrow(dim, 0, size)


@composite()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along `dim`, taken `n` times.

    Parameters
    ----------
    input : Tensor
        Any dtype; of bool the result says where neighbours differ.
    n : int
        How often to take differences; no more than there are elements.
    dim : int
        The dimension to go along.
    prepend, append : Tensor, optional
        Joined to the input first.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diff(tp.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    check_tensor(input, "diff")
    if not input._shape:
        raise RuntimeError(
            "diff(): diff expects input to be at least one-dimensional, got a 0-d tensor"
        )
    if n < 0:
        raise RuntimeError(f"diff(): order must be non-negative but got {n}")
    dim = normalize_dim(dim, len(input._shape), "diff")
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if len(part._shape) != len(input._shape):
            raise RuntimeError(
                "diff(): diff expects prepend or append to be the same dimension as input, got "
                f"{len(part._shape)} and {len(input._shape)}"
            )
        for axis, size in enumerate(part._shape):
            if axis != dim and size != input._shape[axis]:
                raise RuntimeError(
                    "diff(): diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({axis}) = {input._shape[axis]}, "
                    f"but got tensor.size({axis}) = {size}"
                )
    if len(parts) > 1 and n:
        input = _CAT.call(parts, dim)
    for _ in range(min(n, input._shape[dim])):
        after, before = _neighbours(input, dim)
        input = after != before if input.dtype.category == BOOL else after - before
    return input if n else input.clone()


# --- finite differences -----------------------------------------------------------------------


@composite(method=False, outputs="*")
def gradient(
    input: Tensor,
    *,
    spacing: Any = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Return estimates of the partial derivatives of a function given by its values on a grid.

    Inside, the three-point formula that is exact for parabolas; at the edges, a one-sided one.

    Parameters
    ----------
    input : Tensor
        The values.
    spacing : number, sequence of number or sequence of Tensor, optional
        The distance of neighbours, for all dimensions or for each, or the coordinates along each.
    dim : int or sequence of int, optional
        The dimensions to differentiate along; by default all.
    edge_order : {1, 2}
        The order of the formula at the edges.

    Returns
    -------
    tuple of Tensor
        One for each dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.gradient(tp.tensor([1.0, 2.0, 4.0, 8.0]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    check_tensor(input, "gradient")
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"gradient(): only supports edge_order=1 and edge_order=2, got {edge_order}"
        )
    ndim = len(input._shape)
    if spacing is None:
        spacing = 1
    if isinstance(dim, Sequence):
        dims = [existing_dim(d, ndim, "gradient") for d in dim]
        normalize_dims(dims, ndim, "gradient")
    else:
        dims = list(range(ndim)) if dim is None else [existing_dim(dim, ndim, "gradient")]
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            "gradient(): expected spacing to be unspecified, a scalar, or a sequence as long as "
            f"dim, got {len(spacings)} spacings for {len(dims)} dimensions"
        )
    for d in dims:
        if input._shape[d] < edge_order + 1:
            raise RuntimeError(
                f"gradient(): expected each dimension size to be at least edge_order+1, got size "
                f"{input._shape[d]} of dim {d}"
            )
    input = cast(input, to_floating(input.dtype))
    return tuple(
        [_slope(input, step, d, edge_order) for step, d in zip(spacings, dims, strict=True)]
    )


def _slope(input: Tensor, spacing: Any, dim: int, edge_order: int) -> Tensor:
    """Return the slope along one dimension."""
    size = input._shape[dim]
    steps: Any = spacing
    apart = isinstance(spacing, TensorBase)
    if isinstance(spacing, TensorBase):
        if spacing._shape != (size,):
            raise RuntimeError(
                f"gradient(): expected coordinates of shape [{size}] along dim {dim}, got "
                f"{list(spacing._shape)}"
            )
        after, before = _neighbours(spacing, 0)  # type: ignore[arg-type]
        shape = [1] * len(input._shape)
        shape[dim] = size - 1
        steps = (after - before).reshape(shape)

    def step(start: int, count: int) -> Any:
        return steps.narrow(dim, start, count) if apart else steps

    def at(start: int, count: int = 1) -> Tensor:
        return input.narrow(dim, start, count)

    parts: list[Any] = []
    if size > 2 and not apart:
        parts.append((at(2, size - 2) - at(0, size - 2)) / (2 * steps))
    elif size > 2:
        left, right = step(0, size - 2), step(1, size - 2)
        total = left + right
        parts.append(
            at(0, size - 2) * (-right / (left * total))
            + at(1, size - 2) * ((right - left) / (left * right))
            + at(2, size - 2) * (left / (right * total))
        )
    if edge_order == 1:
        first = (at(1) - at(0)) / step(0, 1)
        last = (at(size - 1) - at(size - 2)) / step(size - 2, 1)
    else:
        a, b = step(0, 1), step(1, 1)
        first = (
            at(0) * (-(2 * a + b) / (a * (a + b)))
            + at(1) * ((a + b) / (a * b))
            + at(2) * (-a / (b * (a + b)))
        )
        a, b = step(size - 3, 1), step(size - 2, 1)
        last = (
            at(size - 3) * (b / (a * (a + b)))
            + at(size - 2) * (-(a + b) / (a * b))
            + at(size - 1) * ((2 * b + a) / (b * (a + b)))
        )
    return _CAT.call([first, *parts, last], dim)


# --- integrals --------------------------------------------------------------------------------


def _wide(input: Tensor) -> Tensor:
    """Return integers in a dtype that holds the sum and the difference of two."""
    narrow = input.dtype.category == INTEGER and input.dtype.itemsize < int64.itemsize
    return cast(input, int64) if narrow else input


def _trapezoids(
    name: str, y: Tensor, x: Tensor | None, dx: Number | None, dim: int
) -> tuple[Tensor, int]:
    """Return the areas between neighbours along `dim`."""
    check_tensor(y, name, "y")
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - takes either x or dx, got both"
        )
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}(): Currently, we only support dx as a real number, got {dx}")
    dim = existing_dim(dim, len(y._shape), name)
    for value, label in ((y, "y"), (x, "x")):
        if value is not None and value.dtype.category == BOOL:
            raise RuntimeError(
                f"{name}(): received a bool input for `{label}`, but bool is not supported"
            )
    after, before = _neighbours(_wide(y), dim)
    heights = after + before
    if x is None:
        return heights * ((1 if dx is None else dx) / 2), dim
    if not x._shape:
        # A single coordinate lies nowhere apart from itself.
        return cast(heights, to_floating(promote_types(y.dtype, x.dtype))) * 0.0, dim
    if len(x._shape) == 1:
        if x._shape[0] != y._shape[dim]:
            raise RuntimeError(
                f"{name}(): There must be one `x` value for each sample point, got {x._shape[0]} "
                f"for {y._shape[dim]}"
            )
        shape = [1] * len(y._shape)
        shape[dim] = -1
        x = x.reshape(shape)
    elif len(x._shape) < len(y._shape):
        x = x.reshape((1,) * (len(y._shape) - len(x._shape)) + x._shape)
    right, left = _neighbours(_wide(x), dim)
    return heights * (right - left) / 2, dim


@composite(method=False, aliases=("trapz",))
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Return the integral along `dim` by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values of the function.
    x : Tensor, optional
        Where they were taken.
    dx : number, optional
        The distance of neighbours, 1 by default.
    dim : int
        The dimension to integrate along.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.trapezoid(tp.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    if y.dtype.itemsize == 2 and x is None and y.dtype.category == FLOATING:
        return rounded_once(trapezoid, y.dtype, y, dx=dx, dim=dim)
    areas, dim = _trapezoids("trapezoid", y, x, dx, dim)
    if not y._shape[dim]:
        return sum(y, dim, dtype=y.dtype)
    if not areas._shape[dim] and areas.dtype.category < FLOATING:
        areas = cast(areas, to_floating(areas.dtype))
    return sum(areas, dim)


trapz = trapezoid


@composite(method=False)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Return the integrals up to each point along `dim`; see :func:`trapezoid` for the arguments.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cumulative_trapezoid(tp.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    areas, dim = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(dim)


exact_out(diff, where=lambda given: given.get("n", 1) == 0)
