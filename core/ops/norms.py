"""Norms and distances of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..device.dtypes import FLOATING, DType, as_dtype, promote_types
from ..dispatch.op_registry import composite, handle
from ..dispatch.out_dtypes import exact_out
from ..tensor.shapes import Shape, normalize_dims, one_or_several
from .reductions.reductions import Dims
from .rules import cast, check_tensor

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

__all__ = ["norm"]

_MATRIX_NORM = handle("linalg_matrix_norm")
_VECTOR_NORM = handle("linalg_vector_norm")


def in_dtype(name: str, input: Tensor, dtype: DType) -> Tensor:
    """Return what a norm is taken of in a dtype that holds it.

    Raises
    ------
    RuntimeError
        If the dtype is narrower, complex for real numbers, or real for complex ones.
    """
    wanted = as_dtype(dtype)
    if wanted.is_complex != input.dtype.is_complex or wanted.category < FLOATING:
        kind = "complex for complex" if input.dtype.is_complex else "real for real"
        raise RuntimeError(f"{name}: dtype should be {kind} inputs, but got {wanted.name}")
    if promote_types(input.dtype, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({input.dtype.name}) should be convertible without narrowing "
            f"to the specified dtype ({wanted.name})"
        )
    return cast(input, wanted)


def canonical_norm(
    name: str, input: Tensor, ord: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> tuple[Tensor, float, Shape, bool]:
    """Return the canonical arguments of a vector norm for those that users give."""
    check_tensor(input, name)
    category = input._key.dtype.category
    if category == FLOATING and dtype is None and ord == 2 and type(ord) in (int, float):
        return input, 2.0, normalize_dims(dim, len(input._shape), name), bool(keepdim)
    if category < FLOATING:
        raise RuntimeError(
            f"{name}(): Expected a floating point or complex tensor as input. Got {input.dtype}; "
            "convert it with .to(tp.float32)"
        )
    if dtype is not None:
        input = in_dtype(name, input, dtype)
    dims = normalize_dims(dim, len(input._shape), name)
    order = float(ord)
    if (order < 0 or order == math.inf) and 0 in [input._shape[d] for d in dims]:
        raise RuntimeError(
            f"{name} cannot compute the {ord} norm over no elements because the operation "
            f"does not have an identity; got shape {list(input._shape)}"
        )
    return input, order, dims, bool(keepdim)


def vector_norm(
    name: str, input: Tensor, ord: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> Tensor:
    """Return a vector norm for the arguments that users give."""
    return _VECTOR_NORM.call(*canonical_norm(name, input, ord, dim, keepdim, dtype))


@composite()
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norm of the vectors, or matrices, along `dim`; of all elements by default.

    Parameters
    ----------
    input : Tensor
        Of a floating-point or complex dtype.
    p : number, inf, -inf, "fro" or "nuc"
        A number takes ``sum(abs(input) ** p) ** (1 / p)``, also over several dimensions; "fro" is
        2; "nuc" is the sum of the singular values of matrices.
    dim : int or sequence of int, optional
        The dimensions to reduce.
    keepdim : bool
        Whether the reduced dimensions stay, with size 1.
    dtype : DType, optional
        Convert to this dtype first.

    Notes
    -----
    Where torch deprecates this in favour of ``linalg.vector_norm`` and ``linalg.matrix_norm``,
    much code uses it.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.norm(tp.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    if isinstance(p, str) and p != "fro":
        if p != "nuc":
            raise RuntimeError(f"norm(): p must be a number, 'fro' or 'nuc', got {p!r}")
        return _MATRIX_NORM.call(
            input, "nuc", (-2, -1) if dim is None else one_or_several(dim), keepdim, dtype=dtype
        )
    if p == "fro" and not isinstance(dim, int) and dim is not None and len(dim) > 2:
        raise RuntimeError(f"norm(): 'fro' takes at most two dimensions, got dim={dim}")
    return vector_norm("norm", input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


exact_out(norm)


def norm_slopes(g: Tensor, x: Tensor, norm: Tensor, p: float, dim: tuple[int, ...]) -> Tensor:
    """Return the gradient of the elements of which `norm` is the `p`-norm over `dim`.

    The dimensions of `g` and `norm` are kept. Wherever the norm has no slope the gradient is zero, as a
    subgradient; of equal largest elements each has its share.
    """
    if p == 0:
        return x * 0 * g
    if p == 1:
        return g * x.sgn()
    if p == 2:
        return x * quotient(g, norm)
    size = x.abs()
    if math.isinf(p):
        hit = (size == norm) | ((size != size) & (norm != norm))
        share = g / (hit.sum(dim, True) if dim else hit)
        return x.sgn() * (share * cast(hit, size.dtype))
    if p < 2:
        zero = size == 0
        slopes = x.sgn() * size.masked_fill(zero, 1).pow(p - 1).masked_fill(zero, 0)
    else:
        slopes = x * size.pow(p - 2)
    if p < 1:
        return slopes * (g * norm.masked_fill(norm == 0, 1).pow(1 - p))
    return slopes * quotient(g, norm.pow(p - 1))


def quotient(g: Tensor, divisor: Tensor) -> Tensor:
    """Return ``g / divisor``, and zero where the divisor is zero, for derivatives of any order.

    Masking the result alone would leave 0 * inf in the second derivative.
    """
    zero = divisor == 0
    return (g / divisor.masked_fill(zero, 1)).masked_fill(zero, 0)
