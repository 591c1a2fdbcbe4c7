"""Views by strides of one's choice, and windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast as typed

from ...device.dtypes import int64
from ...dispatch import op_registry
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.overrides import taken_over
from ...dispatch.state import dispatch_state
from ...dispatch.writes import inplace
from ...tensor.base import TensorBase
from ...tensor.shapes import Shape, as_shape, contiguous_strides, normalize_dim
from ..creation.creation import fill_new
from ..indexing.indexing import index_put, zeros_like_gradient
from ..rules import check_tensor
from ..shape.shape import relaid

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["as_strided", "as_strided_", "unfold"]

_ARANGE = op_registry.handle("arange")
_COPY = op_registry.handle("copy")


def write_view(view: Any, src: Any) -> None:
    """Copy to a view, as ``view.copy_(src)``."""
    inplace(_COPY, "copy_", view, (src,), {})


def offset_of(input: Any) -> int:
    """Return how many elements of the storage lie before a tensor's first, within a rule."""
    offset: int = input._key.runtime.storage_offset(input._array)
    return offset


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
    shape, strides = strided_shape(size, stride)
    if layout is None:
        layout = (input.stride(), offset_of(input))
    offset = layout[1] if storage_offset is None else int(storage_offset)
    return Spec((input, shape, strides, offset, layout), shape, input.dtype)


def strided_shape(size: Any, stride: Any) -> tuple[Shape, Shape]:
    """Return the canonical sizes and strides of a view."""
    shape, strides = as_shape((size,), "as_strided"), as_shape((stride,), "as_strided")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"as_strided(): mismatch in length of strides and shape: size and stride must have the same "
            f"length, got size {list(shape)} and stride {list(strides)}"
        )
    if min(strides, default=0) < 0:
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    return shape, strides


def _places(g: Any, shape: Shape, strides: Shape, offset: int) -> Any:
    """Return, in one dimension, where in the storage each element of a strided tensor is."""
    total = fill_new((), offset, int64, g.device)
    for d, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = _ARANGE.call(size, device=g.device) * stride
        total = total + steps.reshape([size if n == d else 1 for n in range(len(shape))])
    return total.expand(shape).reshape(math.prod(shape))


def _canonical_as_strided_backward(
    g: Any, input_shape: Shape, size: Shape, stride: Shape, storage_offset: int, layout: Any
) -> tuple[Any, ...]:
    strides, offset = layout
    if (
        g._shape != tuple(size)
        or (len(size), len(input_shape)) != (len(stride), len(strides))
        or min(*stride, *strides, storage_offset, offset) < 0
    ):
        raise RuntimeError(
            f"as_strided_backward(): expected a gradient of the view's size and a stride for each dimension, "
            f"got {list(g.shape)}, size {list(size)}, stride {list(stride)}, offset {storage_offset} of an "
            f"input of {list(input_shape)} laid out as {layout}"
        )
    return g, input_shape, size, stride, storage_offset, layout


@composite(rule=_canonical_as_strided_backward, method=False)
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
    if not isinstance(input, TensorBase):
        made = taken_over(as_strided_, (input, size, stride, storage_offset))
        if made is not None:
            return made[0]
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
