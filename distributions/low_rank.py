"""Normal distributions of vectors whose covariance is of low rank but for its diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.core.ops import broadcast_tensors, diag_embed, eye, randn
from tensorplug.core.ops.linalg.factors import linalg_cholesky
from tensorplug.core.ops.linalg.triangular import linalg_solve_triangular

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _with_unit(matrix: Any) -> Any:
    return matrix + eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class LowRankMultivariateNormal(Distribution):
    """Jointly normal vectors with the covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Densities cost as much as solving with a matrix of the rank's size.

    Parameters
    ----------
    loc : Tensor
        ``(*batch, n)``, the mean.
    cov_factor : Tensor
        ``(*batch, n, rank)``.
    cov_diag : Tensor
        ``(*batch, n)``, positive.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LowRankMultivariateNormal(tp.zeros(2), tp.ones(2, 1), tp.ones(2)).variance
    tensor([2., 2.])
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        try:
            wide, self.cov_factor, diagonal = broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor "
                f"{tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
            ) from error
        self.loc, self.cov_diag = wide[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = linalg_cholesky(_with_unit(self._weighted() @ cov_factor))
        super().__init__(self.loc.shape[:-1], (n,), validate_args=validate_args)

    def _weighted(self) -> Any:
        """Return the factor's transpose divided by the diagonal."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            new.__dict__[name] = self.__dict__[name]
        return new

    def _full(self, value: Any, count: int) -> Any:
        """Return what has `count` dimensions of an event, for all of the batch."""
        return value.expand((*self._batch_shape, *self._event_shape * count))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        return self._full((factor**2).sum(-1) + diagonal, 1)

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the lower Cholesky factor of the covariance."""
        deviation = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        half = self._unbroadcasted_cov_factor / deviation
        return self._full(deviation * linalg_cholesky(_with_unit(half @ half.mT)), 2)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._full(factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag), 2)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance, by Woodbury's identity."""
        half = linalg_solve_triangular(self._capacitance_tril, self._weighted(), upper=False)
        inverse = diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return self._full(inverse - half.mT @ half, 2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        options: Any = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = randn((*shape[:-1], self.cov_factor.shape[-1]), **options)
        own = self._unbroadcasted_cov_diag.sqrt() * randn(shape, **options)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, common) + own

    def _log_det(self) -> Any:
        """Return the logarithm of the covariance's determinant."""
        small = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * small + self._unbroadcasted_cov_diag.log().sum(-1)

    def mahalanobis(self, difference: Any) -> Any:
        """Return the squared length of differences, measured in standard deviations."""
        plain = (difference**2 / self._unbroadcasted_cov_diag).sum(-1)
        return plain - _batch_mahalanobis(
            self._capacitance_tril, _batch_mv(self._weighted(), difference)
        )

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        distance = self.mahalanobis(value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Any:
        n = self._event_shape[0]
        return self._full(0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det()), 0)
