"""Views by strides: windows, diagonals, complex numbers as pairs, other dtypes; and what writes to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast as typed

from ..device.dtypes import DType, as_dtype, float32, float64, int64
from ..dispatch import op_registry
from ..dispatch.execution import show
from ..dispatch.op_registry import Spec, composite, primitive
from ..dispatch.out_variants import exact_out, inplace
from ..dispatch.state import dispatch_state
from ..tensor.shapes import Shape, as_shape, contiguous_strides, normalize_dim
from .copying import clone
from .creation.creation import fill_new
from .indexing.indexing import at, index_put, select_position, zeros_like_gradient
from .rules import cast, check_tensor
from .shape.shape import relaid

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = [
    "as_strided",
    "as_strided_",
    "as_strided_scatter",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "select_scatter",
    "slice_scatter",
    "unfold",
    "view_as_complex",
    "view_as_real",
    "view_dtype",
]

_ARANGE = op_registry.handle("arange")
_BASIC_INDEX = op_registry.handle("basic_index")
_COPY = op_registry.handle("copy")


def _offset(input: Any) -> int:
    """Return how many elements of the storage lie before a tensor's first, within a rule."""
    offset: int = input._key.runtime.storage_offset(input._array)
    return offset


# --- windows and diagonals ----------------------------------------------------------------------


@primitive("input, size, stride, storage_offset, layout", view=True, reads_layout=True)
def as_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
    layout: tuple[Shape, int] | None = None,
) -> Spec:
    """Return a view with sizes, strides and offset of one's choice into the input's storage.

    Parameters
    ----------
    input : Tensor
        Whose storage is shown.
    size, stride : sequence of int
        The view's sizes, and the step in elements along each dimension.
    storage_offset : int, optional
        How many elements of the storage lie before the first; by default as for `input`.
    layout : tuple, optional
        For internal use: the strides and offset of `input`, which the derivative needs.

    Raises
    ------
    RuntimeError
        If the view would reach beyond the storage, or a stride is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.as_strided(tp.arange(5), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    check_tensor(input, "as_strided")
    shape, strides = as_shape((size,), "as_strided"), as_shape((stride,), "as_strided")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"as_strided(): mismatch in length of strides and shape: {list(strides)} and {list(shape)}"
        )
    if min(strides, default=0) < 0:
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    if layout is None:
        layout = (input.stride(), _offset(input))
    offset = layout[1] if storage_offset is None else int(storage_offset)
    return Spec((input, shape, strides, offset, layout), shape, input.dtype)


def _places(g: Any, shape: Shape, strides: Shape, offset: int) -> Any:
    """Return, in one dimension, where in the storage each element of a strided tensor is."""
    total = fill_new((), offset, int64, g.device)
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = _ARANGE.call(size, device=g.device) * stride
        total = total + steps.reshape([size if n == d else 1 for n in range(len(shape))])
    return total.expand(shape).reshape(math.prod(shape))


@composite(method=False)
def as_strided_backward(
    g: Tensor,
    input_shape: Shape,
    size: Shape,
    stride: Shape,
    storage_offset: int,
    layout: tuple[Shape, int],
) -> Tensor:
    """Return the gradient of the input of :func:`as_strided`, of which `g` is that of the view.

    Elements of the view that share memory add up, those of the input share what comes there.
    """
    gradient: Any = g
    if not math.prod(input_shape) or not math.prod(size):
        return zeros_like_gradient(gradient, input_shape)
    own = _places(gradient, input_shape, *layout)
    shown = _places(gradient, size, stride, storage_offset)
    extent = 1 + max(
        offset + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
        for shape, strides, offset in ((input_shape, *layout), (size, stride, storage_offset))
    )
    empty = zeros_like_gradient(gradient, (extent,))
    gradient = index_put(empty, (shown,), gradient.reshape(math.prod(size)), True)[own]
    if layout[0] != contiguous_strides(input_shape):
        ones = fill_new((math.prod(input_shape),), 1, g.dtype, g.device)
        gradient = gradient / index_put(empty, (own,), ones, True)[own]
    return typed("Tensor", gradient.reshape(input_shape))


@op_registry.defined_by(as_strided)
def as_strided_(
    input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """Have a tensor show its storage by other sizes, strides and offset; other views stay.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(4).as_strided_((2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    return relaid("as_strided_", input, as_strided, size, stride, storage_offset)


dispatch_state.add_method("as_strided_", as_strided_)


@primitive("input, dimension, size, step", view=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Spec:
    """Return a view of all windows of `size` positions along a dimension, `step` apart.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dimension : int
        Along which the windows lie; it counts them in the result.
    size, step : int
        Positions in a window, and from one window to the next.

    Returns
    -------
    Tensor
        With one more dimension, the last: the position in the window.

    Raises
    ------
    RuntimeError
        If a window is larger than the dimension, or `step` is not positive.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    check_tensor(input, "unfold")
    shape = input._shape
    dim = normalize_dim(dimension, len(shape), "unfold")
    length = shape[dim] if shape else 1
    if size < 0:
        raise RuntimeError(f"unfold(): size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"unfold(): step is {step} but must be > 0")
    if not shape:
        return Spec((input, 0, size, step), (size,), input.dtype)
    windows = (length - size) // step + 1
    return Spec(
        (input, dim, size, step), (*shape[:dim], windows, *shape[dim + 1 :], size), input.dtype
    )


@primitive("input, offset, dim1, dim2", view=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Spec:
    """Return a view of a diagonal, as the last dimension in place of two others.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    offset : int
        Which diagonal: 0 the main one, above 0 those above it, below 0 those below.
    dim1, dim2 : int
        Rows and columns.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagonal(tp.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    check_tensor(input, "diagonal")
    first, second, shape = _diagonal_shape(input._shape, offset, dim1, dim2)
    return Spec((input, int(offset), first, second), shape, input.dtype)


def _diagonal_shape(shape: Shape, offset: int, dim1: int, dim2: int) -> tuple[int, int, Shape]:
    """Return the canonical dimensions of a diagonal, and its shape."""
    first = normalize_dim(dim1, len(shape), "diagonal")
    second = normalize_dim(dim2, len(shape), "diagonal")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = shape[first], shape[second]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    rest = [size for d, size in enumerate(shape) if d not in (first, second)]
    return first, second, (*rest, length)


def _canonical_diag_embed(
    input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> tuple[Any, int, int, int]:
    check_tensor(input, "diag_embed")
    ndim = len(input._shape) + 1
    first = normalize_dim(dim1, ndim, "diag_embed")
    second = normalize_dim(dim2, ndim, "diag_embed")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, first, second


@composite(rule=_canonical_diag_embed)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return zeros with the last dimension of `input` laid along the diagonals of two new ones.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diag_embed(tp.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    side = input._shape[-1] + abs(offset)
    rest = iter(input._shape[:-1])
    ndim = len(input._shape) + 1
    shape = tuple([side if d in (dim1, dim2) else next(rest) for d in range(ndim)])
    result = fill_new(shape, 0, input.dtype, input.device)
    _write(diagonal(result, offset, dim1, dim2), input)
    return result


@composite()
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a matrix with a vector on its diagonal, or the diagonal of a matrix as a new vector.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diag(tp.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    check_tensor(input, "diag")
    ndim = len(input._shape)
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return clone(_diagonal(input, diagonal))


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with all elements of `input` on a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagflat(tp.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    check_tensor(input, "diagflat")
    return diag_embed(input.reshape(math.prod(input._shape)), offset)


_diagonal = diagonal  # `diag` has an argument of that name


# --- the same bytes as other numbers ------------------------------------------------------------


@primitive("input", view=True)
def view_as_real(input: Tensor) -> Spec:
    """Return a view of complex numbers as pairs (real, imaginary) in a new last dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.view_as_real(tp.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    check_tensor(input, "view_as_real")
    if not input.dtype.is_complex:
        raise RuntimeError(
            f"view_as_real is only supported for complex tensors, got dtype {input.dtype.name}"
        )
    return Spec((input,), (*input._shape, 2), input.dtype.to_real())


@primitive("input", view=True)
def view_as_complex(input: Tensor) -> Spec:
    """Return a view of pairs (real, imaginary), the last dimension, as complex numbers.

    Raises
    ------
    RuntimeError
        If the last dimension is not of size 2 and stride 1, or the dtype is not float32 or float64.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.view_as_complex(tp.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    check_tensor(input, "view_as_complex")
    if input.dtype not in (float32, float64):
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors, but got a tensor of dtype "
            f"{input.dtype.name}"
        )
    if not input._shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input._shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got {list(input._shape)}")
    strides = input._key.runtime.strides(input._array)
    if strides[-1] != 1 and input.numel():
        raise RuntimeError(f"Tensor must have a last dimension with stride 1, got {strides[-1]}")
    if any([stride % 2 for stride in strides[:-1]]):
        raise RuntimeError(
            f"Tensor must have a stride divisible by 2 for all but last dimension, got {strides}"
        )
    if _offset(input) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return Spec((input,), input._shape[:-1], input.dtype.to_complex())


@primitive("input, dtype", view=True, method=False)
def view_dtype(input: Tensor, dtype: DType) -> Spec:
    """Return a view of the bytes of `input` as another dtype: what ``input.view(dtype)`` calls.

    Raises
    ------
    RuntimeError
        If the element sizes differ and the last dimension is not contiguous or not divisible.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([1.0]).view(tp.int32)
    tensor([1065353216], dtype=tensorplug.int32)
    """
    check_tensor(input, "view")
    dtype = as_dtype(dtype)
    old, new = input.dtype.itemsize, dtype.itemsize
    shape = input._shape
    names = f"{input.dtype.name} as {dtype.name} (different element sizes)"
    if old != new:
        if not shape:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names}")
        strides = input.stride()
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names}, but got {strides[-1]}")
        if shape[-1] * old % new:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {new // old} to view {names}, but got {shape[-1]}"
            )
        if new > old:
            ratio = new // old
            if _offset(input) % ratio:
                raise RuntimeError(
                    f"self.storage_offset() must be divisible by {ratio} to view {names}, but got "
                    f"{_offset(input)}"
                )
            for dim, stride in enumerate(strides[:-1]):
                if stride % ratio:
                    raise RuntimeError(
                        f"self.stride({dim}) must be divisible by {ratio} to view {names}, but got {stride}"
                    )
        shape = (*shape[:-1], shape[-1] * old // new)
    return Spec((input, dtype), shape, dtype)


# --- copies with a view written to --------------------------------------------------------------


def _write(view: Any, src: Any) -> None:
    inplace(_COPY, "copy_", view, (src,), {})


def _check_source(src: Any, shape: Shape) -> None:
    if src._shape != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src._shape)}, slice size = {list(shape)}"
        )


def _source(input: Any, src: Any, shape: Shape, name: str) -> Any:
    """Return what is written to a view of a shape, of the dtype of `input` if it is on its device."""
    check_tensor(src, name, "src")
    _check_source(src, shape)
    return cast(src, input.dtype) if src._key.device is input._key.device else src


def _canonical_select_scatter(input: Any, src: Any, dim: int, index: int) -> tuple[Any, ...]:
    check_tensor(input, "select_scatter")
    dim, index = select_position(input._shape, dim, index)
    shape = (*input._shape[:dim], *input._shape[dim + 1 :])
    return input, _source(input, src, shape, "select_scatter"), dim, index


@composite(rule=_canonical_select_scatter)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` that holds `src` at one position along a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.select_scatter(tp.zeros(2, 2), tp.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    result = clone(input)
    _write(at(result, dim, index), src)
    return result


def _canonical_slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> tuple[Any, ...]:
    check_tensor(input, "slice_scatter")
    shape = input._shape
    dim = normalize_dim(dim, len(shape), "slice_scatter")
    if step <= 0:
        raise ValueError(f"slice_scatter(): step must be greater than zero, got {step}")
    start, end, step = slice(start, end, step).indices(shape[dim])
    held = (*shape[:dim], len(range(start, end, step)), *shape[dim + 1 :])
    return input, _source(input, src, held, "slice_scatter"), dim, start, end, step


@composite(rule=_canonical_slice_scatter)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return a copy of `input` that holds `src` at a slice of a dimension.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.slice_scatter(tp.zeros(4), tp.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    result = clone(input)
    key = (*((slice(None),) * dim), slice(start, end, step))
    _write(show(_BASIC_INDEX, result, (key,), src._shape), src)
    return result


def _canonical_diagonal_scatter(
    input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> tuple[Any, ...]:
    check_tensor(input, "diagonal_scatter")
    first, second, shape = _diagonal_shape(input._shape, offset, dim1, dim2)
    return input, _source(input, src, shape, "diagonal_scatter"), int(offset), first, second


@composite(rule=_canonical_diagonal_scatter)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return a copy of `input` that holds `src` along a diagonal.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.diagonal_scatter(tp.zeros(2, 2), tp.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    result = clone(input)
    _write(diagonal(result, offset, dim1, dim2), src)
    return result


@composite()
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Return a copy of `input` that holds `src` at a view by strides.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.as_strided_scatter(tp.zeros(4), tp.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    result = clone(input)
    target = as_strided(result, size, stride, storage_offset)
    _check_source(src, target._shape)
    _write(target, src)
    return result


exact_out(diag, slice_scatter)
