"""Derivatives of matrix products.

With C = A B and gradient G: G B^H for A and A^H G for B (Giles, "An extended collection of matrix
derivative results", 2008). Vectors and broadcast batches are brought to that form.
"""

from __future__ import annotations

from typing import Any

from ..engine.derivatives import derivative
from ..forward.tangents import tangent
from ..vmap.vmap_rules import shared_rule
from .shape import sum_to_shape


def conjugate(x: Any) -> Any:
    """Return the complex conjugate, or `x` itself if it is real."""
    return x._conj() if x.dtype.is_complex else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of the matrices in the last two dimensions."""
    n = len(x._shape)
    return conjugate(x.permute(*range(n - 2), n - 1, n - 2))


def _matmul_input(g: Any, other: Any, input_shape: tuple[int, ...]) -> Any:
    left, right = len(input_shape), len(other._shape)
    if left == 2 == right:
        return g @ adjoint(other)
    if right == 1:
        # (..., n) and (k,): every row of the gradient is a multiple of `other`.
        g = g.reshape((*g._shape, 1))
        return g * conjugate(other)
    if left == 1 and g.dtype.is_half:  # one sum, which is rounded once
        k = input_shape[0]
        return other.movedim(-2, 0).reshape(k, -1) @ g.reshape(-1)
    if left == 1:
        product = (conjugate(other) @ g.reshape((*g._shape, 1))).reshape(other._shape[:-1])
        return sum_to_shape(product, input_shape)
    return sum_to_shape(g @ adjoint(other), input_shape)


def _matmul_other(g: Any, input: Any, other_shape: tuple[int, ...]) -> Any:
    left, right = len(input._shape), len(other_shape)
    if left == 2 == right:
        return adjoint(input) @ g
    if left == 1:
        if right == 1:
            return g * conjugate(input)
        return conjugate(input).reshape(-1, 1) * g.reshape((*g._shape[:-1], 1, g._shape[-1]))
    if right <= 2:
        # The sum over the batch is one product of two tall matrices.
        k = input._shape[-1]
        rows = 1
        for size in input._shape[:-1]:
            rows *= size
        tall = input.reshape(rows, k)
        return adjoint(tall) @ (g.reshape(rows) if right == 1 else g.reshape(rows, g._shape[-1]))
    return sum_to_shape(adjoint(input) @ g, other_shape)


DERIVATIVES = [
    derivative(
        "matmul",
        input=_matmul_input,
        other=_matmul_other,
    ),
]


TANGENTS = [
    # products
    tangent("matmul", input=lambda t, other: t @ other, other=lambda t, input: input @ t),
]


VMAP_RULES = [
    shared_rule("matmul", "matmul"),
]
