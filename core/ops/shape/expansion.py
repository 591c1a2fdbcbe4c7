"""Repetition without copies, and its reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import FLOATING
from ...dispatch.execution import show
from ...dispatch.op_registry import Spec, composite, handle, primitive
from ...tensor.shapes import as_shape, broadcast_shapes, given_sizes
from ..rules import check_tensor

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["broadcast_tensors", "broadcast_to", "expand", "expand_as", "sum_to_size"]

_EXPAND = handle("expand")


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
    sizes = given_sizes(sizes, size, "expand", "size")
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
                f"expand(): The expanded size of the tensor ({wanted}) must match the existing size "
                f"({own}) at non-singleton dimension {position}. Target sizes: {list(sizes)}. Tensor "
                f"sizes: {list(input._shape)}"
            )
    return Spec((input, tuple(target)), tuple(target), input.dtype)


@composite(view=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` expanded to the shape of `other`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.zeros(1, 3).expand_as(tp.zeros(2, 3)).shape
    Size([2, 3])
    """
    return expand(input, other._shape)


@composite(view=True)
def broadcast_to(input: Tensor, *sizes: Any, size: Sequence[int] | None = None) -> Tensor:
    """Return `input` expanded to a shape.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.broadcast_to(tp.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, *sizes, size=size)


@composite(method=False, outputs="*", view=True)
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
    return tuple([t if t._shape == shape else show(_EXPAND, t, (shape,), shape) for t in tensors])


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
        return input if own or input._key.dtype.category >= FLOATING else input.sum()
    return input.sum(dims, keepdim=False).reshape(shape)
