"""Products of matrices."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor, ops

from ..registry import operator

__all__: list[str] = []


@operator("MatMul")
def matmul(A: Tensor, B: Tensor) -> Tensor:
    return ops.matmul(A, B)


@operator("Gemm")
def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Tensor:
    A = A.T if transA else A
    B = B.T if transB else B
    if C is None:
        product = ops.matmul(A, B)
        return product if alpha == 1 else product * alpha
    if alpha == 1 and beta == 1:
        return ops.addmm(C, A, B)
    return ops.matmul(A, B) * alpha + C * beta


@operator("Einsum")
def einsum(*Inputs: Tensor, equation: str) -> Tensor:
    return ops.einsum(equation, *Inputs)


def integers(x: Tensor, zero_point: Tensor | None, by_rows: bool = False) -> Tensor:
    """Return quantized numbers as int32, counted from their zero point, of each row where it has several."""
    wide = x.to(_int32())
    if zero_point is None:
        return wide
    zero = zero_point.to(_int32())
    if by_rows and zero.dim() == 1 and zero.numel() > 1:
        zero = zero[:, None]
    return wide - zero


def _int32() -> Any:
    from ..values import dtype_of

    return dtype_of(6)


@operator("MatMulInteger")
def matmul_integer(
    A: Tensor,
    B: Tensor,
    a_zero_point: Tensor | None = None,
    b_zero_point: Tensor | None = None,
) -> Tensor:
    return ops.matmul(integers(A, a_zero_point, True), integers(B, b_zero_point))
