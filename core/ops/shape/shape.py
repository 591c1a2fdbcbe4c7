"""Views and other changes of shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dispatch.execution import show
from ...dispatch.op_registry import Spec, composite, handle, in_place, primitive
from ...dispatch.state import dispatch_state
from ...tensor.base import PLAIN, VIEW, TensorBase
from ...tensor.shapes import (
    Shape,
    as_shape,
    given_sizes,
    infer_size,
    normalize_dim,
    normalize_dims,
    view_strides,
)
from ..copying import copied
from ..rules import check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "flatten",
    "ravel",
    "reshape",
    "reshape_as",
    "squeeze",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
]

_PERMUTE = handle("permute")
_VIEW = handle("view")


def shown_as(input: Any, shape: Shape) -> Any:
    """Return a view in a shape that is known to fit, such as one with sizes of 1 more or fewer."""
    return show(_VIEW, input, (shape,), shape)


def copy_shown_as(copy: Any, shape: Shape) -> Any:
    """Return a fresh copy in another shape, which is no view: nobody else has the memory."""
    result = show(_VIEW, copy, (shape,), shape)
    if result._view is not None:
        result._view = None
        result._storage = None
        if result._state == VIEW:
            result._state = PLAIN
    return result


def permuted(input: Any, order: Shape) -> Any:
    """Return a view with the dimensions in a canonical order."""
    shape = input._shape
    return show(_PERMUTE, input, (order,), tuple([shape[dim] for dim in order]))


def viewable(input: Any, shape: Shape) -> bool:
    """Return whether strides show the memory of `input` in a shape of as many elements."""
    runtime = input._key.runtime
    array = input._array
    return (
        runtime.is_contiguous(array)
        or view_strides(input._shape, runtime.strides(array), shape) is not None
    )


# --- one shape as another -----------------------------------------------------------------------


@primitive("input, shape", view=True, layout=True, reads_layout=True, method=False)
def view(input: Tensor, *sizes: Any, shape: Sequence[int] | None = None) -> Spec:
    """Return the memory of `input` in another shape of as many elements.

    ``input.view(*shape)`` calls it; ``input.view(dtype)`` is :func:`view_dtype`.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *sizes : int, or one sequence of int
        One size may be -1, which is inferred; ``shape=`` takes them too.

    Raises
    ------
    RuntimeError
        If the sizes do not fit, or no strides show the memory in this shape; ``reshape`` copies then.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).view(-1).shape
    Size([6])
    """
    target = infer_size(given_sizes(sizes, shape, "view", "size"), math.prod(input._shape), "view")
    if not viewable(input, target):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension "
            f"spans across two contiguous subspaces). Use .reshape(...) instead. Got view size "
            f"{list(target)}, size {list(input._shape)} and stride {list(input.stride())}"
        )
    return Spec((input, target), target, input.dtype)


@composite(view=True, layout=True, reads_layout=True)
def reshape(input: Tensor, *sizes: Any, shape: Sequence[int] | None = None) -> Tensor:
    """Return `input` in another shape: a view where strides allow it, else a copy. -1 is inferred.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *sizes : int, or one sequence of int
        The shape; ``shape=`` takes it too.

    Raises
    ------
    RuntimeError
        If the sizes do not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).reshape(2, -1).shape
    Size([2, 3])
    """
    check_tensor(input, "reshape")
    target = infer_size(
        given_sizes(sizes, shape, "reshape", "shape"),
        math.prod(input._shape),
        "reshape",
    )
    if viewable(input, target):
        return show(_VIEW, input, (target,), target)
    return copy_shown_as(copied(input), target)


def reshaped(input: Any, shape: Shape) -> Any:
    """Return :func:`reshape` to a shape that is known to fit."""
    if dispatch_state.layers_active or not viewable(input, shape):
        return reshape(input, shape)
    return show(_VIEW, input, (shape,), shape)


@composite(view=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` in the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).reshape_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return reshape(input, other._shape)


@composite(view=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the memory of `input` in the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).view_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return view(input, other._shape)


@composite(view=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `input` with the dimensions from `start_dim` to `end_dim` merged into one.

    Parameters
    ----------
    input : Tensor
        Any dtype; one without dimensions gets one.
    start_dim, end_dim : int
        The first and the last dimension to merge.

    Raises
    ------
    RuntimeError
        If `start_dim` comes after `end_dim`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).flatten(1).shape
    Size([2, 12])
    """
    check_tensor(input, "flatten")
    shape = input._shape
    first = normalize_dim(start_dim, len(shape), "flatten")
    last = normalize_dim(end_dim, len(shape), "flatten")
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and shape:
        return input
    merged = math.prod(shape[first : last + 1])
    return reshaped(input, (*shape[:first], merged, *shape[last + 1 :]))


@composite(view=True, layout=True, reads_layout=True)
def ravel(input: Tensor) -> Tensor:
    """Return the elements of `input` in one dimension, one after the other in memory.

    It is a view if `input` is contiguous, else a copy.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).ravel().shape
    Size([6])
    """
    check_tensor(input, "ravel")
    return reshaped(input.contiguous(), (math.prod(input._shape),))


@composite(view=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return `input` with one dimension split into several.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int
        The dimension.
    sizes : sequence of int
        What it becomes; one size may be -1.

    Raises
    ------
    RuntimeError
        If the product of `sizes` is not the dimension's size.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 12).unflatten(1, (3, -1)).shape
    Size([2, 3, 4])
    """
    check_tensor(input, "unflatten")
    shape = input._shape
    dim = normalize_dim(dim, len(shape), "unflatten")
    if not shape:
        raise RuntimeError("unflatten: Dimension specified as 0 but tensor has no dimensions")
    parts = as_shape((sizes,), "unflatten")
    if not parts:
        raise RuntimeError("unflatten(): sizes must be non-empty")
    try:
        parts = infer_size(parts, shape[dim], "unflatten")
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in the input tensor"
        ) from None
    return view(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


# --- sizes of 1 ---------------------------------------------------------------------------------


@composite(view=True, layout=True, inplace=True)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None, *others: int) -> Tensor:
    """Return a view of `input` without its dimensions of size 1, or without those among `dim`.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int or sequence of int, optional
        Which dimensions to drop, where their size is 1.
    *others : int
        Further dimensions, as of the method ``x.squeeze(0, 2)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1, 3, 1).squeeze(0).shape
    Size([3, 1])
    """
    check_tensor(input, "squeeze")
    shape = input._shape
    if others:
        dim = as_shape((dim, *others), "squeeze")
    if dim is None:
        kept = tuple([size for size in shape if size != 1])
    else:
        dims = normalize_dims(dim, len(shape), "squeeze", empty_is_all=False)
        kept = tuple([size for d, size in enumerate(shape) if size != 1 or d not in dims])
    return shown_as(input, kept)


@composite(view=True, layout=True, inplace=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view of `input` with a new dimension of size 1 at `dim`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(3).unsqueeze(-1).shape
    Size([3, 1])
    """
    check_tensor(input, "unsqueeze")
    shape = input._shape
    dim = normalize_dim(dim, len(shape) + 1, "unsqueeze")
    return shown_as(input, (*shape[:dim], 1, *shape[dim:]))


def _each(function: Any, tensors: tuple[Any, ...]) -> Any:
    """Apply a function to one tensor, or to each of several or of a sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0]) if isinstance(tensors[0], (list, tuple)) else tensors
    return tuple([function(tensor) for tensor in tensors])


@composite(method=False, view=True)
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor, as one dimension of size 1 if it has none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atleast_1d(tp.tensor(5.0))
    tensor([5.])
    """
    return _each(lambda x: x if x._shape else shown_as(x, (1,)), tensors)


@composite(method=False, view=True)
def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor with at least two dimensions; new ones stand in front.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atleast_2d(tp.tensor([5.0, 6.0]))
    tensor([[5., 6.]])
    """
    return _each(
        lambda x: x if len(x._shape) > 1 else shown_as(x, (1,) * (2 - len(x._shape)) + x._shape),
        tensors,
    )


@composite(method=False, view=True)
def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor with at least three dimensions: (n,) becomes (1, n, 1), (m, n) (m, n, 1).

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atleast_3d(tp.zeros(2)).shape
    Size([1, 2, 1])
    """

    def widen(x: Any) -> Any:
        shape = x._shape
        if len(shape) > 2:
            return x
        return shown_as(x, ((1, 1, 1), (1, *shape, 1), (*shape, 1))[len(shape)])

    return _each(widen, tensors)


# --- a tensor made a view of itself -------------------------------------------------------------


def relaid(name: str, input: Any, function: Any, *args: Any) -> Any:
    """Apply a view op in place: the tensor shows its memory in the new way, other views stay."""
    check_tensor(input, name)
    dispatch_state.gradient.relayout(name, input, lambda source: function(source, *args))
    return input


@in_place(squeeze)
def _squeeze(input: Any, dim: Any = None, *others: int) -> Any:
    return relaid("squeeze_", input, squeeze, dim, *others)


@in_place(unsqueeze)
def _unsqueeze(input: Any, dim: int) -> Any:
    return relaid("unsqueeze_", input, unsqueeze, dim)
