"""Views and other changes of shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..current import current
from ..execution import show
from ..operators import Spec, composite, handle, in_place, primitive
from ..shapes import (
    Shape,
    as_shape,
    broadcast_shapes,
    infer_size,
    normalize_dim,
    normalize_dims,
    view_strides,
)
from ..tensor_base import PLAIN, VIEW, TensorBase
from .copying import copied
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "broadcast_to",
    "expand",
    "expand_as",
    "flatten",
    "matrix_H",
    "moveaxis",
    "movedim",
    "permute",
    "ravel",
    "reshape",
    "reshape_as",
    "squeeze",
    "sum_to_size",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
]

_EXPAND = handle("expand")
_PERMUTE = handle("permute")
_VIEW = handle("view")


def shown_as(input: Any, shape: Shape) -> Any:
    """Return a view in a shape that is known to fit, such as one with sizes of 1 more or fewer."""
    return show(_VIEW, input, (shape,), shape)


def copy_shown_as(copy: Any, shape: Shape) -> Any:
    """Return a fresh copy in another shape, which is no view: nobody else has the memory."""
    result = show(_VIEW, copy, (shape,), shape)
    extra = result._extra
    if extra is not None and extra.view is not None:
        extra.view = None
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
    runtime = input._kind.runtime
    array = input._array
    return (
        runtime.is_contiguous(array)
        or view_strides(input._shape, runtime.strides(array), shape) is not None
    )


# --- one shape as another -----------------------------------------------------------------------


@primitive("input, shape", view=True, method=False)
def view(input: Tensor, shape: Shape) -> Spec:
    """Return the memory of `input` in another shape of as many elements.

    ``input.view(*shape)`` calls it; ``input.view(dtype)`` is :func:`view_dtype`.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    shape : tuple of int
        One size may be -1, which is inferred.

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
    target = infer_size(shape, math.prod(input._shape), "view")
    if not viewable(input, target):
        raise RuntimeError(
            f"view size {list(target)} is not compatible with input tensor's size "
            f"{list(input._shape)} and stride {list(input.stride())} (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return Spec((input, target), target, input.dtype)


@composite(view=True)
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
        as_shape(sizes if shape is None else (shape,), "reshape"),
        math.prod(input._shape),
        "reshape",
    )
    if viewable(input, target):
        return show(_VIEW, input, (target,), target)
    return copy_shown_as(copied(input), target)


@composite()
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` in the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).reshape_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return reshape(input, other._shape)


@composite()
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the memory of `input` in the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).view_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return view(input, other._shape)


@composite()
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
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@composite()
def ravel(input: Tensor) -> Tensor:
    """Return the elements of `input` in one dimension: a view if it is contiguous, else a copy.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).ravel().shape
    Size([6])
    """
    return reshape(input, -1) if input.numel() else reshape(input, 0)


@composite()
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
    parts = as_shape((sizes,), "unflatten")
    if not parts:
        raise RuntimeError("unflatten(): sizes must be non-empty")
    try:
        parts = infer_size(parts, shape[dim], "unflatten")
    except RuntimeError:
        raise RuntimeError(
            f"unflatten(): provided sizes {list(parts)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in the input tensor"
        ) from None
    return view(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


# --- sizes of 1 ---------------------------------------------------------------------------------


@composite(view=True, inplace=True)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Return a view of `input` without its dimensions of size 1, or without those among `dim`.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    dim : int or sequence of int, optional
        Which dimensions to drop, where their size is 1.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1, 3, 1).squeeze(0).shape
    Size([3, 1])
    """
    check_tensor(input, "squeeze")
    shape = input._shape
    if dim is None:
        kept = tuple([size for size in shape if size != 1])
    else:
        dims = normalize_dims(dim, len(shape), "squeeze", empty_is_all=False)
        kept = tuple([size for d, size in enumerate(shape) if size != 1 or d not in dims])
    return shown_as(input, kept)


@composite(view=True, inplace=True)
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
        tensors = tuple(tensors[0])
    return tuple([function(tensor) for tensor in tensors])


@composite(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor, as one dimension of size 1 if it has none.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.atleast_1d(tp.tensor(5.0))
    tensor([5.])
    """
    return _each(lambda x: x if x._shape else shown_as(x, (1,)), tensors)


@composite(method=False)
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


@composite(method=False)
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


# --- order of dimensions ------------------------------------------------------------------------


@primitive("input, dims", view=True)
def permute(input: Tensor, *order: Any, dims: Sequence[int] | None = None) -> Spec:
    """Return a view of `input` with its dimensions in another order.

    Parameters
    ----------
    input : Tensor
        Any dtype.
    *order : int, or one sequence of int
        Each dimension once; ``dims=`` takes it too.

    Raises
    ------
    RuntimeError
        If a dimension is missing or named twice.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).permute(2, 0, 1).shape
    Size([4, 2, 3])
    """
    check_tensor(input, "permute")
    ndim = len(input._shape)
    given = as_shape(order if dims is None else (dims,), "permute")
    if len(given) != ndim:
        raise RuntimeError(
            f"permute(): the tensor has {ndim} dimensions, but dims names {len(given)}: {list(given)}"
        )
    found = tuple([normalize_dim(dim, ndim, "permute") for dim in given])
    if len(set(found)) != ndim:
        raise RuntimeError(f"permute(): duplicate dims are not allowed, got {list(given)}")
    return Spec((input, found), tuple([input._shape[dim] for dim in found]), input.dtype)


@composite(view=True, inplace=True, aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view of `input` with two dimensions exchanged.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).transpose(0, 2).shape
    Size([4, 3, 2])
    """
    check_tensor(input, "transpose")
    ndim = len(input._shape)
    first = normalize_dim(dim0, ndim, "transpose")
    second = normalize_dim(dim1, ndim, "transpose")
    order = list(range(ndim))
    if ndim:
        order[first], order[second] = second, first
    return permuted(input, tuple(order))


swapaxes = swapdims = transpose


@composite(view=True, inplace=True)
def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix as a view; a vector or number stays as it is.

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).t().shape
    Size([3, 2])
    """
    check_tensor(input, "t")
    ndim = len(input._shape)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return permuted(input, tuple(range(ndim - 1, -1, -1)))


@composite(aliases=("moveaxis",))
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view with the dimensions `source` moved to `destination`; the others keep their order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).movedim(0, -1).shape
    Size([3, 4, 2])
    """
    check_tensor(input, "movedim")
    ndim = len(input._shape)
    sources = (source,) if isinstance(source, int) else tuple(source)
    targets = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim(): Invalid source or destination dims: source ({list(sources)} dims) should "
            f"contain the same number of dims as destination ({list(targets)} dims)"
        )
    sources = tuple([normalize_dim(dim, ndim, "movedim") for dim in sources])
    targets = tuple([normalize_dim(dim, ndim, "movedim") for dim in targets])
    for dims, role in ((sources, "source"), (targets, "destination")):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim(): repeated dim in `{role}` ({list(dims)})")
    if not ndim:
        return permuted(input, ())
    moved = dict(zip(targets, sources, strict=True))
    rest = iter([dim for dim in range(ndim) if dim not in sources])
    order = tuple([moved[dim] if dim in moved else next(rest) for dim in range(ndim)])
    return permuted(input, order)


moveaxis = movedim


@composite()
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix or a batch of matrices.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1 + 1j, 2j]]).adjoint()
    tensor([[1.-1.j],
            [0.-2.j]])
    """
    check_tensor(input, "adjoint")
    if len(input._shape) < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{len(input._shape)}-D tensor."
        )
    turned = transpose(input, -2, -1)
    return turned.conj() if input.dtype.is_complex else turned


@composite(name="matrix_H", method=False)
def matrix_H(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix: what ``input.H`` is.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3).H.shape
    Size([3, 2])
    """
    if len(input._shape) not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{len(input._shape)}-D tensor. For batches of matrices, consider using tensor.mH"
        )
    turned = t(input)
    return turned.conj() if input.dtype.is_complex else turned


# --- repetition without copies ------------------------------------------------------------------


@primitive("input, shape", view=True)
def expand(
    input: Tensor, *sizes: Any, size: Sequence[int] | None = None, implicit: bool = False
) -> Spec:
    """Return a view of `input` with dimensions of size 1 repeated, and new ones in front; -1 keeps a size.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    check_tensor(input, "expand")
    sizes = as_shape(sizes if size is None else (size,), "expand")
    lead = len(sizes) - len(input._shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(sizes)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(input._shape)})"
        )
    target = list(sizes)
    for position, wanted in enumerate(sizes):
        own = input._shape[position - lead] if position >= lead else 1
        if wanted == -1 and position >= lead:
            target[position] = own
        elif wanted < 0 or (own != 1 and own != wanted):
            raise RuntimeError(
                f"expand(): the expanded size of the tensor ({wanted}) must match the existing size "
                f"({own}) at non-singleton dimension {position}. Target sizes: {list(sizes)}. Tensor "
                f"sizes: {list(input._shape)}"
            )
    return Spec((input, tuple(target)), tuple(target), input.dtype)


@composite()
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` expanded to the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1, 3).expand_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return expand(input, other._shape)


@composite()
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Return `input` expanded to a shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.broadcast_to(tp.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, size)


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors expanded to the shape that all of them broadcast to.

    Examples
    --------
    >>> import tensorplug as tp
    >>> [x.shape for x in tp.broadcast_tensors(tp.zeros(3, 1), tp.zeros(2))]
    [Size([3, 2]), Size([3, 2])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for tensor in tensors:
        check_tensor(tensor, "broadcast_tensors", "tensors")
    shape = broadcast_shapes(*[tensor._shape for tensor in tensors])
    return tuple([show(_EXPAND, tensor, (shape,), shape) for tensor in tensors])


@composite()
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Return `input` summed over the dimensions along which `size` broadcasts to its shape.

    Raises
    ------
    RuntimeError
        If `size` does not broadcast to the shape of `input`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sum_to_size(tp.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, 2)
    tensor([[4., 6.]])
    """
    check_tensor(input, "sum_to_size")
    shape = as_shape(size, "sum_to_size")
    own = input._shape
    lead = len(own) - len(shape)
    if lead < 0 or any([a not in (1, b) for a, b in zip(shape, own[lead:], strict=True)]):
        raise RuntimeError(
            f"size {{{list(shape)}}} is not expandable to size {{{list(own)}}}: sum_to_size() undoes a "
            "broadcast"
        )
    dims = [d for d, n in enumerate(own) if d < lead or (shape[d - lead] == 1 and n != 1)]
    if not dims:
        return input
    return input.sum(dims, keepdim=False).reshape(shape)


# --- a tensor made a view of itself -------------------------------------------------------------


def _relayout(name: str, input: Any, function: Any, *args: Any) -> Any:
    """Apply a view op in place: the tensor shows its memory in the new way, other views stay."""
    check_tensor(input, name)
    current.gradient.relayout(name, input, lambda source: function(source, *args))
    return input


@in_place(squeeze)
def _squeeze(input: Any, dim: Any = None) -> Any:
    return _relayout("squeeze_", input, squeeze, dim)


@in_place(unsqueeze)
def _unsqueeze(input: Any, dim: int) -> Any:
    return _relayout("unsqueeze_", input, unsqueeze, dim)


@in_place(transpose)
def _transpose(input: Any, dim0: int, dim1: int) -> Any:
    return _relayout("transpose_", input, transpose, dim0, dim1)


@in_place(t)
def _t(input: Any) -> Any:
    return _relayout("t_", input, t)
