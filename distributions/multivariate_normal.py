"""The normal distribution of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.ops import eye
from tensorplug.core.ops.linalg.factors import linalg_cholesky
from tensorplug.core.ops.linalg.triangular import linalg_solve_triangular
from tensorplug.core.tensor.shapes import broadcast_shapes

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Any, vector: Any) -> Any:
    """Return products of matrices and vectors whose batches broadcast."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Any, difference: Any) -> Any:
    """Return squared lengths of differences, for lower Cholesky factors whose batches broadcast."""
    shape = broadcast_shapes(factor.shape[:-2], difference.shape[:-1])
    wide = difference.expand((*shape, difference.shape[-1])).unsqueeze(-1)
    factor = factor.expand((*shape, *factor.shape[-2:]))
    return (linalg_solve_triangular(factor, wide, upper=False).squeeze(-1) ** 2).sum(-1)


def factor_of_precision(P: Any) -> Any:
    """Return the lower factor of the inverse of a positive-definite matrix, without inverting it."""
    flipped = linalg_cholesky(P.flip((-2, -1))).flip((-2, -1)).mT
    unit = eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg_solve_triangular(flipped.tril(), unit, upper=False)


class MultivariateNormal(Distribution):
    """Vectors whose elements are jointly normal.

    Parameters
    ----------
    loc : Tensor
        ``(*batch, n)``, the mean.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        One of the three, ``(*batch, n, n)``: the covariance, its inverse, or its Cholesky factor, which
        is the cheapest.

    Examples
    --------
    >>> import tensorplug as tp
    >>> MultivariateNormal(tp.zeros(2), tp.eye(2)).log_prob(tp.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _stored = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        n = loc.shape[-1]
        self.loc = loc.expand((*batch, n))
        matrix = matrix.expand((*batch, *matrix.shape[-2:]))
        self.__dict__[name] = matrix
        super().__init__(batch, (n,), validate_args=validate_args)
        if name == "scale_tril":
            factor = matrix
        elif name == "covariance_matrix":
            factor = linalg_cholesky(matrix)
        else:
            factor = factor_of_precision(matrix)
        self._unbroadcasted_scale_tril = factor

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        L = self._unbroadcasted_scale_tril
        return L @ L.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        L = self._unbroadcasted_scale_tril
        unit = eye(L.shape[-1], dtype=L.dtype, device=L.device)
        half = linalg_solve_triangular(L, unit, upper=False)
        return half.mT @ half

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return (self._unbroadcasted_scale_tril**2).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        noise = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def mahalanobis(self, difference: Any) -> Any:
        """Return the squared length of differences, measured in standard deviations."""
        return _batch_mahalanobis(self._unbroadcasted_scale_tril, difference)

    def _log_det(self) -> Any:
        """Return the logarithm of the covariance's determinant."""
        return 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        distance = self.mahalanobis(value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance + self._log_det())

    def entropy(self) -> Any:
        n = self._event_shape[0]
        return 0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det())
