"""Transforms to matrices: triangles, Cholesky factors, positive-definite ones."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import cat, diag_embed, eye, logaddexp, ones_like, zeros_like
from tensorplug.core.ops.linalg.factors import linalg_cholesky

from . import constraints
from .transform_base import Transform
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform"]


def _from_one(row: Any) -> Any:
    """Return rows moved to the right by a place, beginning with 1."""
    return cat([ones_like(row[..., :1]), row[..., :-1]], -1)


class CorrCholeskyTransform(Transform):
    """From D (D - 1) / 2 numbers to the Cholesky factor of a correlation matrix of D rows.

    Hyperbolic tangents of the numbers say how much of a row's length that is left each element takes.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        return (r + eye(r.shape[-1], dtype=r.dtype, device=r.device)) * _from_one(left)

    def _inverse(self, y: Any) -> Any:
        left = _from_one(1 - (y * y).cumsum(-1))
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        softplus = logaddexp(-2 * x, zeros_like(x))
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        rows = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if rows * (rows - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], rows, rows)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class LowerCholeskyTransform(Transform):
    """From matrices to lower triangles with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """From matrices to positive-definite ones, by way of :class:`LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg_cholesky(y))
