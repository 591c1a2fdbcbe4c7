"""Functions of matrices, and products of vectors, from ``torch.linalg`` and the top level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device.dtypes import BOOL, INTEGER, int64, scalar_type
from ...dispatch.op_registry import Spec, composite, primitive
from ...dispatch.out_dtypes import exact_out, names_results
from ...tensor.shapes import broadcast_shapes, existing_dim, is_truth, normalize_dim
from ..arithmetic.pointwise import mul
from ..matmul.contractions import multiply_chain
from ..matmul.products import matmul
from ..rules import check_tensor
from . import results
from .lu import linalg_lu_factor_ex
from .rules import (
    arange,
    check_matrix,
    column,
    concatenate,
    conjugate,
    constant_of,
    identity_like,
    row,
    where,
)
from .solvers import linalg_inv

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["cross", "det", "logdet", "matrix_exp", "matrix_power", "slogdet", "trace"]


@composite()
def trace(input: Tensor) -> Tensor:
    """Return the sum of a matrix's diagonal; integers are summed in int64.

    Raises
    ------
    NotImplementedError
        For bool.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.trace(tp.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    check_tensor(input, "trace")
    if len(input._shape) != 2:
        raise RuntimeError(
            f"trace(): expected a matrix, but got tensor with dim {len(input._shape)}"
        )
    if input._key.dtype.category == BOOL:
        raise NotImplementedError(
            "trace(): \"trace\" not implemented for 'Bool'; convert the matrix to an integer dtype"
        )
    own: Any = input
    return own.diagonal().sum()


# --- determinants -----------------------------------------------------------------------------


def permutation_sign(pivots: Any, like: Any) -> Any:
    """Return -1 to the number of rows that LAPACK's pivots exchange."""
    n = pivots._shape[-1]
    moved = (pivots != arange(n, pivots, pivots.dtype) + 1).sum(-1)
    return (1 - 2 * (moved % 2)).to(like.dtype.to_real())


def _canonical_det(A: Any) -> tuple[Any]:
    check_matrix("linalg.det", A, square=True)
    return (A,)


@composite(rule=_canonical_det, method=False)
def linalg_det(A: Tensor) -> Tensor:
    """Return the determinants of square matrices ``(*, n, n)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.det(tp.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    LU, pivots, _ = linalg_lu_factor_ex(A)
    diagonal: Any = LU.diagonal(0, -2, -1)
    return diagonal.prod(-1) * permutation_sign(pivots, LU)


@composite()
def det(input: Tensor) -> Tensor:
    """Return the determinants of square matrices; an alias of ``linalg.det``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.det(tp.tensor([[2.0]]))
    tensor(2.)
    """
    check_matrix("det", input, square=True)
    return linalg_det(input)


def _canonical_slogdet(A: Any) -> tuple[Any]:
    check_matrix("linalg.slogdet", A, square=True)
    return (A,)


@composite(rule=_canonical_slogdet, outputs=results.linalg_slogdet, method=False)
def linalg_slogdet(A: Tensor) -> results.linalg_slogdet:
    """Return the sign of the determinant and the logarithm of its magnitude.

    Parameters
    ----------
    A : Tensor
        ``(*, n, n)``.

    Returns
    -------
    linalg_slogdet
        ``sign``, of magnitude 1, or 0 for a singular matrix, and ``logabsdet``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.slogdet(tp.tensor([[-1.0]])).sign
    tensor(-1.)
    """
    LU, pivots, _ = linalg_lu_factor_ex(A)
    diagonal: Any = LU.diagonal(0, -2, -1)
    sign = diagonal.sgn().prod(-1) * permutation_sign(pivots, LU)
    return results.linalg_slogdet(sign, diagonal.abs().log().sum(-1))


@composite(outputs="sign, logabsdet")
def slogdet(input: Tensor) -> results.slogdet:
    """Return sign and logarithm of the determinant; an alias of ``linalg.slogdet``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.slogdet(tp.tensor([[-1.0]])).logabsdet
    tensor(0.)
    """
    check_matrix("slogdet", input, square=True)
    return results.slogdet(*linalg_slogdet(input))


@composite()
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of determinants; NaN where a real one is negative.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.logdet(tp.tensor([[1.0]]))
    tensor(0.)
    """
    check_matrix("logdet", input, square=True)
    sign: Any
    sign, logabs = linalg_slogdet(input)
    if input.dtype.is_complex:
        return sign.log() + logabs
    return where(sign == -1, float("nan"), logabs)


# --- powers and the exponential ---------------------------------------------------------------


@primitive("input")
def matrix_exp(input: Tensor) -> Spec:
    """Return the exponential of square matrices ``(*, n, n)``: the sum of A^k / k!.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.matrix_exp(tp.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_matrix("linalg.matrix_exp", input, "A", square=True, half=True)
    return Spec((input,), input._shape, input.dtype)


@composite()
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return powers of square matrices ``(*, n, n)``; negative ones of the inverse.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.matrix_power(tp.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    name = "linalg.matrix_power"
    check_tensor(input, name, "A")
    if is_truth(n) or not hasattr(n, "__index__"):
        raise TypeError(f"{name}: argument 'n' must be int, got {n!r} of type {type(n).__name__}")
    if len(input._shape) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if input._shape[-1] != input._shape[-2]:
        check_matrix(name, input, square=True)
    base: Any = input
    if n == 0:
        return constant_of(base, identity_like(base))
    if n < 0:
        base = linalg_inv(base)
        n = -n
    if n == 1:
        return base.clone() if base is input else base
    result: Any = None
    while n:
        if n & 1:
            result = base if result is None else matmul(result, base)
        n >>= 1
        if n:
            base = matmul(base, base)
    return result


@composite(name="linalg_multi_dot", method=False)
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, in the order that takes the least work.

    Parameters
    ----------
    tensors : sequence of Tensor
        Matrices; the first may be a vector that counts as a row, the last one that counts as a
        column.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.multi_dot([tp.ones(2, 3), tp.ones(3, 4), tp.ones(4)])
    tensor([12., 12.])
    """
    name = "linalg.multi_dot"
    matrices: list[Any] = list(tensors)
    for matrix in matrices:
        check_tensor(matrix, name, "tensors")
    if len(matrices) < 2:
        raise RuntimeError(f"{name}(): expected at least 2 tensors but got {len(matrices)}")
    for number, matrix in enumerate(matrices):
        check_tensor(matrix, name, f"tensors[{number}]")
        edge = number in (0, len(matrices) - 1)
        if len(matrix._shape) != 2 and not (edge and len(matrix._shape) == 1):
            which = ("the last" if number else "the first") + " tensor"
            expected = f"{which} must be 1D or 2D" if edge else f"tensor {number} must be 2D"
            raise RuntimeError(f"{name}(): {expected} but got {len(matrix._shape)}D")
        if matrix._key.dtype is not matrices[0]._key.dtype:
            raise RuntimeError(
                f"{name}(): all tensors must have be the same dtype but tensor 0 is "
                f"{scalar_type(matrices[0].dtype)} and tensor {number} {scalar_type(matrix.dtype)}"
            )
    from_vector, to_vector = (len(matrices[i]._shape) == 1 for i in (0, -1))
    if from_vector:
        matrices[0] = row(matrices[0])
    if to_vector:
        matrices[-1] = column(matrices[-1])
    result = multiply_chain(name, matrices)
    shape = result._shape
    if from_vector or to_vector:
        result = result.reshape(shape[from_vector : 2 - to_vector])
    return result


# --- products of vectors ----------------------------------------------------------------------


def _vectors(input: Any, other: Any, *, dim: int = -1) -> tuple[Any, ...]:
    """Return the canonical arguments of a cross product; `dim` counts from the front."""
    return _along("linalg.cross", input, other, dim)


@composite(rule=_vectors, name="linalg_cross", method=False)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product of vectors along `dim`; the other dimensions broadcast.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.cross(tp.tensor([1, 0, 0]), tp.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    shape = broadcast_shapes(input._shape, other._shape)
    a: Any = input.expand(shape)
    b: Any = other.expand(shape)
    product: Tensor = a.roll(-1, dim) * b.roll(1, dim) - a.roll(1, dim) * b.roll(-1, dim)
    return product


def _along(name: str, input: Any, other: Any, dim: int) -> tuple[Any, ...]:
    check_tensor(input, name)
    check_tensor(other, name, "other")
    if input._key.dtype is not other._key.dtype:
        raise RuntimeError(
            f"{name}: expected scalar type {scalar_type(input.dtype)} but found "
            f"{scalar_type(other.dtype)}"
        )
    if len(input._shape) != len(other._shape):
        raise RuntimeError(
            f"{name}: inputs must have the same number of dimensions, got {list(input._shape)} and "
            f"{list(other._shape)}"
        )
    named, dim = dim, existing_dim(dim, len(input._shape), name)
    if input._shape[dim] != 3 or other._shape[dim] != 3:
        raise RuntimeError(
            f"{name}: inputs dimension {named} must have length 3. Got shapes {list(input._shape)} "
            "and "
            f"{list(other._shape)}"
        )
    broadcast_shapes(input._shape, other._shape)
    return input, other, dim


@composite()
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product along `dim`, by default the first dimension of size 3.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.cross(tp.tensor([1, 0, 0]), tp.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    check_tensor(input, "cross")
    if dim is None:
        if 3 not in input._shape:
            raise RuntimeError(
                f"cross: no dimension of size 3 in input of shape {list(input._shape)}"
            )
        dim = input._shape.index(3)
    result: Tensor = linalg_cross(*_along("cross", input, other, dim)[:2], dim=dim)
    return result


@composite(name="linalg_vecdot", method=False)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the sums over `dim` of the products of ``conj(x)`` and `y`, which broadcast.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.vecdot(tp.tensor([[1.0, 2.0], [3.0, 4.0]]), tp.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    name = "linalg.vecdot"
    check_tensor(x, name, "x")
    check_tensor(y, name, "y")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"{name}: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_type(x.dtype)} and y of type {scalar_type(y.dtype)} instead"
        )
    first: Any = conjugate(x)
    if len(x._shape) == 1 and x._shape == y._shape and x.dtype.category != BOOL:
        # In one pass, and without room for all products.
        normalize_dim(dim, 1, name)
        return matmul(first, y)
    product: Any = mul(first, y)
    return product.sum(dim, dtype=x.dtype)


@composite(name="linalg_vander", method=False)
def linalg_vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the matrices whose columns are the powers 0 to N - 1 of the vectors `x`.

    Parameters
    ----------
    x : Tensor
        ``(*, n)``; a number is a vector of one.
    N : int, optional
        By default n.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.vander(tp.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    check_tensor(x, "linalg.vander", "x")
    if x.dtype.category == BOOL:
        raise RuntimeError(
            "linalg.vander: supports floating point, complex, and integer tensors, but got bool"
        )
    own: Any = x.to(int64) if x.dtype.category == INTEGER else x
    if not x._shape:
        own = own.reshape(1)
    count: int = own._shape[-1] if N is None else N
    if count < 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {count}")
    if count == 1:
        return own.new_ones((*own._shape, 1))
    ones = own.new_ones((*own._shape, 1))
    powers = own.reshape((*own._shape, 1)).expand((*own._shape, count - 1)).cumprod(-1)
    return concatenate([ones, powers], -1)


@composite(name="linalg_diagonal", method=False, view=True)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals of matrices, by default those in the last two dimensions.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.linalg.diagonal(tp.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    check_tensor(A, "linalg.diagonal", "A")
    own: Any = A
    return own.diagonal(offset, dim1, dim2)


names_results(matrix_power)
exact_out(linalg_det, linalg_slogdet, slogdet, linalg_cross, cross, linalg_vecdot)
exact_out(
    linalg_multi_dot,
    said="{name}(): expected out tensor to have dtype {words[0]} but got {words[1]}",
)
