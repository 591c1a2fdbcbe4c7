"""The products that the standard has outside its extension ``linalg``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.core import Tensor, ops

from .array import Array, wrap
from .promotion import align

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Array:
    """Return the matrix product; a vector counts as a row on the left, as a column on the right."""
    return wrap(ops.matmul(*align(x1, x2)))


def matrix_transpose(x: Tensor, /) -> Array:
    """Return the transpose of each matrix of a stack."""
    return wrap(x.mT)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Return the sums of products over axes: the last of `x1` with the first of `x2`, or those named."""
    first, second = align(x1, x2)
    return wrap(ops.tensordot(first, second, axes))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """Return the inner products of vectors along an axis; the first of each pair is conjugated."""
    check_extents("vecdot", x1, x2, axis)
    first, second = align(x1, x2)
    products: Any = ops.mul(ops.conj(first), second)
    return wrap(ops.sum(products, axis, dtype=products.dtype))


def check_extents(name: str, x1: Tensor, x2: Tensor, axis: int) -> None:
    """Refuse vectors of different sizes, which otherwise would broadcast."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"{name}(): the vectors along axis {axis} have {x1.shape[axis]} and {x2.shape[axis]} "
            "elements, expected as many"
        )
