"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tensorplug.autograd import no_grad
from tensorplug.core.device.dtypes import float64
from tensorplug.core.ops import rand_like, where, zeros_like
from tensorplug.core.ops.special.bessel import i0e, i1e

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`, of a density proportional to ``exp(concentration cos(x - loc))``.

    Mean and variance are the circular ones.

    Examples
    --------
    >>> import tensorplug as tp
    >>> VonMises(0.0, 1.0).log_prob(tp.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self.concentration
        # log I0(k) is k + log i0e(k).
        apart = (value - self.loc).cos() - 1
        return k * apart - math.log(2 * math.pi) - i0e(k).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw by rejection from a wrapped Cauchy distribution (Best and Fisher 1979), in float64."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            loc = self.loc.to(float64).expand(shape)
            k = self.concentration.to(float64).expand(shape)
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            angle = zeros_like(k)
            left = k > 0  # not for NaN
            while bool(left.any()):
                z = (math.pi * rand_like(k)).cos()
                f = (1 + r * z) / (r + z)
                c, u = k * (r - f), rand_like(k)
                fits = (c * (2 - c) > u) | ((c / u).log() + 1 - c >= 0)
                side = (rand_like(k) - 0.5).sign()
                angle = where(left & fits, side * f.clamp(min=-1, max=1).acos(), angle)
                left = left & ~fits
            turned = (angle + math.pi + loc) % (2 * math.pi) - math.pi
            return where(k > 0, turned, math.nan).to(self.loc.dtype)
