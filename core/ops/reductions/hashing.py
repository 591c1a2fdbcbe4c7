"""Hashes of elements, to tell cheaply whether two tensors are equal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...device.dtypes import COMPLEX, FLOATING, float64, int64, uint64
from ...dispatch.op_registry import composite, handle
from ...dispatch.out_dtypes import exact_out
from ...errors import check_flag
from ...tensor.shapes import reduced_shape
from ..bitwise import bitwise_xor
from ..joining.joining import cat
from ..rules import cast, check_tensor
from .reductions import Dims, dims_with_elements

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["hash_tensor"]

_view_dtype = handle("view_dtype")


def _canonical_hash_tensor(
    input: Any, dim: Dims = (), *, keepdim: bool = False, mode: int = 0
) -> Any:
    check_tensor(input, "hash_tensor")
    check_flag(keepdim, "hash_tensor")
    if mode != 0:
        raise RuntimeError(f"hash_tensor(): Unknown hash_tensor mode: {mode!r}; 0 is by xor")
    if input.dtype.category == COMPLEX:
        raise NotImplementedError(
            f"hash_tensor(): not implemented for {input.dtype}; hash view_as_real of it"
        )
    return input, dims_with_elements(input, dim, "hash_tensor"), keepdim


@composite("input, dim, keepdim", rule=_canonical_hash_tensor)
def hash_tensor(input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """Return a hash of the elements over the dimensions `dim`, or over all of them.

    Elements are converted to int64, or to float64, and their bits combined by exclusive or: the order of
    the elements does not count, and two that are equal cancel.

    Parameters
    ----------
    input : Tensor
        Of real numbers or truth values.
    dim : int or sequence of int, optional
        Dimensions to hash over; all of them by default.
    keepdim : bool, optional
        Whether the result keeps these, of size 1.
    mode : int, optional
        0, by exclusive or, is the only one.

    Returns
    -------
    Tensor
        Of uint64.

    Raises
    ------
    IndexError, RuntimeError
        If there is no element to hash.
    NotImplementedError
        Of complex numbers.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.hash_tensor(tp.tensor([[1, 2, 4], [1, 3, 2]]), dim=1)
    tensor([7, 0], dtype=tensorplug.uint64)
    """
    dims: Any = dim  # as the rule makes it
    kind = float64 if input.dtype.category == FLOATING else int64
    words = _view_dtype.call(cast(input.detach(), kind), int64)
    kept = [size for place, size in enumerate(input._shape) if place not in dims]
    count = math.prod(input._shape[place] for place in dims)
    words = words.movedim(dims, tuple(range(-len(dims), 0))).reshape(*kept, count)
    while words._shape[-1] > 1:
        half = words._shape[-1] // 2
        rest = words[..., 2 * half :]
        words = bitwise_xor(words[..., :half], words[..., half : 2 * half])
        if rest._shape[-1]:
            words = cat([words, rest], -1)
    words = words.reshape(reduced_shape(input._shape, dims, keepdim))
    return _view_dtype.call(words, uint64)


exact_out(hash_tensor)
