"""Reductions over dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import INTEGER, DType, int64
from ..operators import Spec, primitive
from ..shapes import normalize_dims, reduced_shape
from .rules import cast, check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["sum"]


@primitive("input, dim, keepdim")
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Spec:
    """Return the sum of the elements over the dimensions `dim`, or over all of them.

    Parameters
    ----------
    input : Tensor
        Any dtype; integers and bool are summed in int64.
    dim : int or sequence of int, optional
        The dimensions to reduce.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    dtype : DType, optional
        Convert to this dtype before summing.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.sum(tp.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    check_tensor(input, "sum")
    dims = normalize_dims(dim, len(input._shape), "sum")
    if dtype is None:
        dtype = int64 if input.dtype.category <= INTEGER else input.dtype
    input = cast(input, dtype)
    return Spec((input, dims, keepdim), reduced_shape(input._shape, dims, keepdim), dtype)
