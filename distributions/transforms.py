"""Invertible maps with the logarithm of their Jacobian's determinant."""

from __future__ import annotations

import math
from typing import Any

from tensorplug.core.device.dtypes import finfo
from tensorplug.core.ops import cat, logaddexp, ones_like, softmax, zeros_like
from tensorplug.core.tensor.predicates import is_tensor
from tensorplug.core.tensor.shapes import broadcast_shapes

from . import constraints
from .independent import sum_rightmost
from .matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from .transform_base import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from .transform_parts import CatTransform, StackTransform
from .utils import broadcast_all

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


def _softplus(x: Any) -> Any:
    return logaddexp(x, zeros_like(x))


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        if is_tensor(self.exponent):
            return self.exponent.sign()
        return (self.exponent > 0) - (self.exponent < 0)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.exponent)

    def inverse_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.exponent)

    def _same(self, other: Any) -> bool:
        return _equal(self.exponent, other.exponent)


def _with_parameters(shape: Any, *parameters: Any) -> Any:
    """Return the shape that values of a shape and parameters, which may be tensors, make together."""
    return broadcast_shapes(shape, *[tuple(p.shape) for p in parameters if is_tensor(p)])


def _equal(a: Any, b: Any) -> bool:
    return bool((a == b).all()) if is_tensor(a) or is_tensor(b) else bool(a == b)


def _inner_sigmoid(x: Any) -> Any:
    """Return probabilities off 0 and 1, whose logarithms and inverses are finite."""
    info = finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1 - info.eps)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return _inner_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        info = finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -_softplus(-x) - _softplus(x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2 * (math.log(2) - x - _softplus(-2 * x))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return _softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -_softplus(-x)


class AbsTransform(Transform):
    """``y = |x|``, which has no inverse but one of its two halves."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale x, over values of `event_dim` dimensions."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        if is_tensor(self.scale):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale = self.scale.abs().log() if is_tensor(self.scale) else math.log(abs(self.scale))
        return sum_rightmost(ones_like(x) * scale, self.event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.loc, self.scale)

    def inverse_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.loc, self.scale)

    def _same(self, other: Any) -> bool:
        return _equal(self.loc, other.loc) and _equal(self.scale, other.scale)


class SoftmaxTransform(Transform):
    """y = softmax(x), which forgets a common addend and so has no Jacobian."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(Transform):
    """From n numbers to n + 1 probabilities: each takes its share of what is left of a stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offsets(self, x: Any) -> Any:
        n = x.shape[-1]
        return (n - ones_like(x).cumsum(-1) + 1).log()

    def _call(self, x: Any) -> Any:
        z = _inner_sigmoid(x - self._offsets(x))
        left = (1 - z).cumprod(-1)
        ones = ones_like(x[..., :1])
        return cat([z, ones], -1) * cat([ones, left], -1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return head.log() - left.log() + self._offsets(head)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        shifted = x - self._offsets(x)
        return (-shifted - _softplus(-shifted) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] - 1)


class CumulativeDistributionTransform(Transform):
    """From a distribution's values to their probabilities, ``y = distribution.cdf(x)``."""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def _same(self, other: Any) -> bool:
        return self.distribution is other.distribution
