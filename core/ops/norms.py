"""Norms and distances of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOATING, DType, as_dtype, bfloat16, float16, float32
from ..operators import composite, handle
from ..shapes import Shape, normalize_dims
from .reductions.reductions import Dims, amax, amin, sum
from .rules import cast, check_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["norm"]

_MATRIX_NORM = handle("linalg_matrix_norm")
_HALVES = (float16, bfloat16)


@composite(method=False)
def _vector_norm(input: Tensor, ord: float, dim: Shape, keepdim: bool) -> Tensor:
    """Return the norm of order `ord` over canonical `dim`; of a floating-point or complex dtype."""
    wide = cast(input, float32) if input.dtype in _HALVES else input
    if ord == 0:
        total = sum(cast(wide != 0, wide.dtype.to_real()), dim, keepdim)
    elif math.isinf(ord):
        total = (amax if ord > 0 else amin)(wide.abs(), dim, keepdim) if dim else wide.abs()
    elif ord == 1:
        total = sum(wide.abs(), dim, keepdim) if dim else wide.abs()
    elif ord == 2:
        squares = (wide * wide.conj()).real if wide.is_complex() else wide * wide
        total = sum(squares, dim, keepdim).sqrt() if dim else wide.abs()
    else:
        powers = wide.abs().pow(ord)
        total = (sum(powers, dim, keepdim) if dim else powers).pow(1 / ord)
    return cast(total, input.dtype.to_real())


def vector_norm(
    name: str, input: Tensor, ord: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> Tensor:
    """Return a vector norm for the arguments that users give."""
    check_tensor(input, name)
    category = input._kind.dtype.category
    if category == FLOATING and dtype is None and ord == 2 and type(ord) in (int, float):
        return _vector_norm(input, 2.0, normalize_dims(dim, len(input._shape), name), bool(keepdim))
    if category < FLOATING:
        raise RuntimeError(
            f"{name}(): Expected a floating point or complex tensor as input. Got {input.dtype}; "
            "convert it with .to(tp.float32)"
        )
    if dtype is not None:
        dtype = as_dtype(dtype)
        if dtype.category < FLOATING or (input.is_complex() and not dtype.is_complex):
            raise RuntimeError(
                f"{name}(): dtype must be a floating-point or complex dtype that holds "
                f"{input.dtype}, got {dtype}"
            )
        input = cast(input, dtype)
    dims = normalize_dims(dim, len(input._shape), name)
    order = float(ord)
    if (order < 0 or order == math.inf) and 0 in [input._shape[d] for d in dims]:
        raise RuntimeError(
            f"{name}(): cannot compute the {ord} norm over no elements because the operation "
            f"does not have an identity; got shape {list(input._shape)}"
        )
    return _vector_norm(input, order, dims, bool(keepdim))


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
            input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype
        )
    if p == "fro" and not isinstance(dim, int) and dim is not None and len(dim) > 2:
        raise RuntimeError(f"norm(): 'fro' takes at most two dimensions, got dim={dim}")
    return vector_norm("norm", input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)
