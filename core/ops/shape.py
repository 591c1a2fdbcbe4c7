"""Views and other changes of shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operators import Spec, composite, primitive
from ..shapes import Shape, as_shape, infer_size, normalize_dim, view_strides
from .copying import clone
from .rules import check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["expand", "permute", "reshape", "view"]


@primitive("input, shape", view=True, method=False)
def view(input: Tensor, shape: Shape) -> Spec:
    """Return the memory of `input` in another shape of as many elements.

    Raises
    ------
    RuntimeError
        If the sizes do not fit, or no strides show the memory in this shape; ``reshape`` copies then.
    """
    target = infer_size(shape, input.numel(), "view")
    if view_strides(input._shape, input.stride(), target) is None:
        raise RuntimeError(
            f"view size {list(target)} is not compatible with input tensor's size "
            f"{list(input._shape)} and stride {list(input.stride())} (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return Spec((input, target), target, input.dtype)


@primitive("input, dims", view=True)
def permute(input: Tensor, *dims: Any) -> Spec:
    """Return a view of `input` with its dimensions in another order.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(2, 3, 4).permute(2, 0, 1).shape
    Size([4, 2, 3])
    """
    check_tensor(input, "permute")
    ndim = len(input._shape)
    order = tuple([normalize_dim(dim, ndim, "permute") for dim in as_shape(dims, "permute")])
    if len(order) != ndim or len(set(order)) != ndim:
        raise RuntimeError(
            f"permute(): dims {list(order)} must name each of the {ndim} dimensions exactly once"
        )
    return Spec((input, order), tuple([input._shape[dim] for dim in order]), input.dtype)


@primitive("input, shape", view=True)
def expand(input: Tensor, *sizes: Any, implicit: bool = False) -> Spec:
    """Return a view of `input` with dimensions of size 1 repeated, and new ones in front; -1 keeps a size.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    check_tensor(input, "expand")
    sizes = as_shape(sizes, "expand")
    lead = len(sizes) - len(input._shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(sizes)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(input._shape)})"
        )
    target = list(sizes)
    for position, size in enumerate(sizes):
        own = input._shape[position - lead] if position >= lead else 1
        if size == -1 and position >= lead:
            target[position] = own
        elif size < 0 or (own != 1 and own != size):
            raise RuntimeError(
                f"expand(): the expanded size of the tensor ({size}) must match the existing size "
                f"({own}) at non-singleton dimension {position}. Target sizes: {list(sizes)}. Tensor "
                f"sizes: {list(input._shape)}"
            )
    return Spec((input, tuple(target)), tuple(target), input.dtype)


@composite()
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return `input` in another shape: a view where strides allow it, else a copy. -1 is inferred.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.arange(6).reshape(2, -1).shape
    Size([2, 3])
    """
    check_tensor(input, "reshape")
    target = infer_size(as_shape(shape, "reshape"), input.numel(), "reshape")
    if view_strides(input._shape, input.stride(), target) is None:
        input = clone(input)
    return view(input, target)
