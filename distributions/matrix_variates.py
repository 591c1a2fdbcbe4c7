"""Distributions of matrices: Wishart, and Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import arange, cat, diag_embed, eye, randn, where
from tensorplug.core.ops.linalg.factors import linalg_cholesky
from tensorplug.core.ops.linalg.functions import linalg_slogdet
from tensorplug.core.ops.linalg.triangular import cholesky_solve
from tensorplug.core.ops.special.gamma import mvlgamma
from tensorplug.core.tensor.creation import tensor
from tensorplug.core.tensor.shapes import broadcast_shapes

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma_family import Beta, Chi2
from .multivariate_normal import factor_of_precision
from .utils import broadcast_all, lazy_property

__all__ = ["LKJCholesky", "Wishart"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices of density det ** (concentration - 1).

    With a concentration of 1 all correlation matrices are equally likely. Samples are made by the onion
    method of Lewandowski, Kurowicka and Joe (2009), of factors instead of matrices.

    Parameters
    ----------
    dim : int
        Rows of the matrices, 2 or more.
    concentration : Tensor or number
        Positive.

    Examples
    --------
    >>> import tensorplug as tp
    >>> LKJCholesky(2, 1.0).log_prob(tp.eye(2))
    tensor(-0.6931)
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.dim = self.dim
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with no_grad():
            like = self.concentration
            options: Any = {"dtype": like.dtype, "device": like.device}
            row = arange(self.dim - 1, **options)
            row = cat([row.new_zeros((1,)), row])
            rest = like.unsqueeze(-1) + 0.5 * (self.dim - 2) - 0.5 * row
            length = Beta(row + 0.5, rest, validate_args=False).sample(sample_shape)
            direction = randn(self._extended_shape(sample_shape), **options).tril(-1)
            norm = (direction**2).sum(-1, keepdim=True).sqrt()
            below = where(norm > 0, length.unsqueeze(-1).sqrt() * direction / norm, 0.0)
            left = (1 - (below**2).sum(-1)).clamp(min=finfo(like.dtype).tiny).sqrt()
            return below + diag_embed(left)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k, others = self.concentration, self.dim - 1
        order = arange(others, 0, -1, dtype=k.dtype, device=k.device) - 1
        order = order + 2 * (k - 1).unsqueeze(-1)
        found = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = k + 0.5 * others
        norm = 0.5 * others * math.log(math.pi) + mvlgamma(alpha - 0.5, others)
        return found - (norm - alpha.lgamma() * others)


class Wishart(ExponentialFamily):
    """Sums of `df` outer products of normal vectors of a covariance, for `df` that need not be whole.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom, above n - 1.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        One of the three, ``(*batch, n, n)``, as for :class:`MultivariateNormal`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Wishart(3.0, tp.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _stored = (
        "df", "covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril",
    )  # fmt: skip

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """What parameters have to be."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.ndim < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch dimensions"
            )
        n = matrix.shape[-1]
        if isinstance(df, (int, float)):
            df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if bool((self.df < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self.__dict__[name] = matrix = matrix.expand((*batch, n, n))
        super().__init__(batch, (n, n), validate_args=validate_args)
        if name == "covariance_matrix":
            matrix = linalg_cholesky(matrix)
        elif name == "precision_matrix":
            matrix = factor_of_precision(matrix)
        self._unbroadcasted_scale_tril = matrix

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        unit = eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        return cholesky_solve(unit.expand(factor.shape), factor)

    def _wide(self, value: Any) -> Any:
        return value.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Any:
        return self._wide(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return self._wide(where(factor <= 0, math.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._wide(self.df) * (V**2 + outer)

    def _bartlett(self, sample_shape: Sequence[int]) -> Any:
        """Draw by Bartlett's decomposition: chi numbers on the diagonal, normal ones below it."""
        n = self._event_shape[-1]
        like = self._unbroadcasted_scale_tril
        places = arange(n, dtype=like.dtype, device=like.device)
        chi = Chi2(self.df.unsqueeze(-1) - places, validate_args=False).rsample(sample_shape).sqrt()
        below = randn(
            self._extended_shape(sample_shape), dtype=like.dtype, device=like.device
        ).tril(-1)
        factor = like @ (below + diag_embed(chi.clamp(min=finfo(like.dtype).eps)))
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int = 10) -> Any:
        """Return samples; singular ones are drawn again up to a number of times."""
        drawn = self._bartlett(sample_shape)
        for _ in range(max_try_correction):
            regular = self.support.check(drawn)
            if bool(regular.all()):
                break
            drawn = where(self._wide(regular), drawn, self._bartlett(sample_shape))
        return drawn

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        df, n = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        shape = broadcast_shapes(value.shape, factor.shape)
        relative = cholesky_solve(value.expand(shape), factor.expand(shape))
        trace = relative.diagonal(dim1=-2, dim2=-1).sum(-1)
        norm = df * (n * math.log(2) / 2 + self._half_log_det()) + mvlgamma(df / 2, n)
        return (df - n - 1) / 2 * linalg_slogdet(value)[1] - trace / 2 - norm

    def entropy(self) -> Any:
        df, n = self.df, self._event_shape[-1]
        steps = arange(n, dtype=df.dtype, device=df.device) / 2
        digamma = ((df / 2).unsqueeze(-1) - steps).digamma().sum(-1)
        scale = (n + 1) * (n * math.log(2) / 2 + self._half_log_det())
        return scale + mvlgamma(df / 2, n) - (df - n - 1) / 2 * digamma + df * n / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - linalg_slogdet(-2 * x)[1]) + mvlgamma(half, n)
