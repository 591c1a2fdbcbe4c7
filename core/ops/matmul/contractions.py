"""Contractions over numbered dimensions: tensordot, Kronecker products, chains of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dispatch.op_registry import composite
from ...dispatch.out_dtypes import exact_out
from ...tensor.base import TensorBase
from ...tensor.shapes import normalize_dim
from ..arithmetic.pointwise import mul
from ..reductions.reductions import sum as sum_
from ..rules import check_tensor
from .products import matmul

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["chain_matmul", "kron", "tensordot"]


@composite(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Return the sums of products over several dimensions of `a` and `b`.

    Parameters
    ----------
    a, b : Tensor
        The dimensions summed over are of equal size, or 1.
    dims : int or pair of sequences of int
        How many of the last dimensions of `a` and first of `b`, or which ones.

    Returns
    -------
    Tensor
        The remaining dimensions of `a`, then those of `b`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.tensordot(tp.ones(2, 3, 4), tp.ones(3, 4, 5)).shape
    Size([2, 5])
    """
    check_tensor(a, "tensordot", "a")
    check_tensor(b, "tensordot", "b")
    dims_a, dims_b = _contracted_dims(dims, len(a._shape), len(b._shape))
    for p, q in zip(dims_a, dims_b, strict=True):
        size_a, size_b = a._shape[p], b._shape[q]
        if size_a == size_b:
            continue
        if size_b == 1:
            a = sum_(a, p, True, dtype=a.dtype)
        elif size_a == 1:
            b = sum_(b, q, True, dtype=b.dtype)
        else:
            raise RuntimeError(
                f"tensordot(): contracted dimensions need to match, but first has size {size_a} "
                "in dim "
                f"{p} and second has size {size_b} in dim {q}"
            )
    kept_a = [d for d in range(len(a._shape)) if d not in dims_a]
    kept_b = [d for d in range(len(b._shape)) if d not in dims_b]
    rows = [a._shape[d] for d in kept_a]
    columns = [b._shape[d] for d in kept_b]
    inner = math.prod([a._shape[d] for d in dims_a])
    left = a.permute((*kept_a, *dims_a)).reshape(math.prod(rows), inner)
    right = b.permute((*dims_b, *kept_b)).reshape(inner, math.prod(columns))
    return matmul(left, right).reshape(rows + columns)


def _contracted_dims(dims: Any, ndim_a: int, ndim_b: int) -> tuple[list[int], list[int]]:
    if isinstance(dims, TensorBase):
        values: Any = dims.tolist()  # type: ignore[attr-defined]
        dims = values[0] if isinstance(values, list) and len(values) == 1 else values
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot(): expects dims >= 0, but got dims={dims}")
        if dims > min(ndim_a, ndim_b):
            raise RuntimeError(
                f"tensordot(): expects dims <= {min(ndim_a, ndim_b)}, the smaller number of "
                "dimensions, "
                f"but got dims={dims}"
            )
        return list(range(ndim_a - dims, ndim_a)), list(range(dims))
    pair: list[Any] = list(dims)
    first, second = [
        [part]
        if isinstance(part, int)
        else list(part.tolist() if hasattr(part, "tolist") else part)
        for part in pair
    ]
    if len(first) != len(second):
        raise RuntimeError(
            f"tensordot(): both dimension lists should have same length, got {first} and {second}"
        )
    dims_a = [normalize_dim(d, ndim_a, "tensordot") for d in first]
    dims_b = [normalize_dim(d, ndim_b, "tensordot") for d in second]
    for chosen in (dims_a, dims_b):
        if len(set(chosen)) != len(chosen):
            raise RuntimeError(
                f"tensordot(): a dimension appears multiple times in the list of dims {chosen}"
            )
    return dims_a, dims_b


@composite()
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: `other` times each element of `input`, as blocks.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.kron(tp.tensor([1, 10]), tp.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    check_tensor(input, "kron")
    check_tensor(other, "kron", "other")
    ndim = max(len(input._shape), len(other._shape))
    a = (1,) * (ndim - len(input._shape)) + input._shape
    b = (1,) * (ndim - len(other._shape)) + other._shape
    left = [size for x in a for size in (x, 1)]
    right = [size for y in b for size in (1, y)]
    product = mul(input.reshape(left), other.reshape(right))
    return product.reshape([x * y for x, y in zip(a, b, strict=True)])


def multiply_chain(name: str, matrices: Sequence[Any]) -> Any:
    """Return the product of matrices in the order that needs the fewest multiplications.

    Dynamic programming over where to split each run of matrices (Cormen et al., "Introduction to
    Algorithms", section 15.2).
    """
    for number, matrix in enumerate(matrices):
        check_tensor(matrix, name, f"tensors[{number}]")
    count = len(matrices)
    sizes = [matrices[0]._shape[0], *[matrix._shape[1] for matrix in matrices]]
    for number in range(1, count):
        if matrices[number]._shape[0] != sizes[number]:
            raise RuntimeError(
                f"{name}(): tensors {number - 1} and {number} with shapes "
                f"{list(matrices[number - 1]._shape)} and {list(matrices[number]._shape)} cannot "
                "be "
                "multiplied"
            )
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return matrices[i]
        k = split[i][j]
        return matmul(product(i, k), product(k + 1, j))

    return product(0, count - 1)


@composite(method=False)
def chain_matmul(*matrices: Any) -> Tensor:
    """Return the product of two or more matrices; ``linalg.multi_dot`` is its newer name.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.chain_matmul(tp.ones(2, 3), tp.ones(3, 4), tp.ones(4, 5)).shape
    Size([2, 5])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    for number, matrix in enumerate(matrices):
        check_tensor(matrix, "chain_matmul", f"matrices[{number}]")
        if len(matrix._shape) != 2:
            raise RuntimeError(
                f"chain_matmul(): Tensor dimension is {len(matrix._shape)}, expected 2 instead"
            )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices, got none")
    return multiply_chain("chain_matmul", matrices)


exact_out(tensordot, chain_matmul)
