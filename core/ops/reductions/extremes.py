"""The largest and smallest elements with their indices, and the three forms of max and min."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from ...device.dtypes import bool_, uint8
from ...dispatch.op_registry import Delegated, composite, handle
from ...dispatch.out_dtypes import exact_out
from ...tensor.base import TensorBase
from ...tensor.shapes import normalize_dim
from .. import results
from ..rules import cast, check_tensor
from .reductions import amax, amin, argmax, argmin, check_not_empty

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["max", "min"]


def pick(input: Tensor, dim: int, positions: Tensor, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return (values, indices): the elements at `positions`, which kept the dimension `dim`."""
    values = input.gather(dim, positions)
    if keepdim or not input._shape:
        return values, positions
    return values.squeeze(dim), positions.squeeze(dim)


def _split_arguments(
    name: str, dim: Any, keepdim: Any, other: Any
) -> tuple[Tensor | None, int | None, bool]:
    """Return (other, dim, keepdim) of a call of max or min, which have three forms."""
    if isinstance(dim, TensorBase):
        if other is not None:
            raise TypeError(f"{name}() takes one other tensor, got two")
        dim, other = None, dim
    if other is not None and dim is not None:
        raise TypeError(f"{name}() takes either dim or another tensor, got both")
    if dim is None and keepdim:
        raise TypeError(f"{name}(): keepdim needs a dim; {'a' + name}() keeps all dimensions")
    return other, dim, keepdim


def _rule(name: str, of_all: Callable[[Tensor], Tensor], of_two: Any) -> Callable[..., Any]:
    """Return the rule of max or min, whose other two forms are the ops `of_all` and `of_two`."""

    def canonical(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        check_tensor(input, name)
        other, dim, keepdim = _split_arguments(name, dim, keepdim, other)
        if other is not None:
            return Delegated.to(of_two.call, input, other)
        if dim is None:
            return Delegated.to(of_all, input)
        dim = normalize_dim(dim, len(input._shape), name)
        if 0 in input._shape:
            check_not_empty(input, (dim,), name)
        return input, dim, bool(keepdim)

    return canonical


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> results.max: ...
@overload
def max(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...
@composite(
    "input, dim, keepdim",
    rule=_rule("max", amax, handle("maximum")),
    outputs=results.max,
    delegates="amax that of all elements, maximum that of two tensors",
)
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element, the largest along a dimension with its place, or ``maximum``.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one.
    dim : int or Tensor, optional
        The dimension to reduce; a tensor here is `other`.
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    other : Tensor, optional
        Return the elementwise maximum of `input` and `other`.

    Returns
    -------
    Tensor or named tuple (values, indices)
        A tuple where `dim` is given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.max(tp.tensor([[1, 5], [3, 2]]))
    tensor(5)
    >>> tp.max(tp.tensor([[1, 5], [3, 2]]), dim=1).indices
    tensor([1, 0])
    """
    ordered = cast(input, uint8) if input.dtype is bool_ else input
    return results.max(*pick(input, dim, argmax(ordered, dim, True), keepdim))


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> results.min: ...
@overload
def min(input: Tensor, dim: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...
@composite(
    "input, dim, keepdim",
    rule=_rule("min", amin, handle("minimum")),
    outputs=results.min,
    delegates="amin that of all elements, minimum that of two tensors",
)
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element, the smallest along a dimension with its place, or ``minimum``.

    Parameters
    ----------
    input : Tensor
        Any dtype but a complex one.
    dim : int or Tensor, optional
        The dimension to reduce; a tensor here is `other`.
    keepdim : bool
        Whether the reduced dimension stays, with size 1.
    other : Tensor, optional
        Return the elementwise minimum of `input` and `other`.

    Returns
    -------
    Tensor or named tuple (values, indices)
        A tuple where `dim` is given.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.min(tp.tensor([[1, 5], [3, 2]]))
    tensor(1)
    >>> tp.min(tp.tensor([[1, 5], [3, 2]]), dim=1).indices
    tensor([0, 1])
    """
    ordered = cast(input, uint8) if input.dtype is bool_ else input
    return results.min(*pick(input, dim, argmin(ordered, dim, True), keepdim))


exact_out(max, min)
