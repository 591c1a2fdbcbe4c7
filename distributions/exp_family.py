"""Distributions of an exponential family."""

from __future__ import annotations

from typing import Any

from tensorplug.autograd import enable_grad, grad, is_grad_enabled

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with density exp(<t(x), theta> - F(theta) + k(x)).

    Subclasses supply the natural parameters theta as ``_natural_params``, and the log normalizer F as
    ``_log_normalizer(*theta)``. Entropies and divergences follow from its derivative, E[t(x)].
    """

    #: E[k(x)], where it is known.
    _mean_carrier_measure: Any = None

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    def _statistics(self) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """Return the natural parameters, F of them, and the expected statistics, recorded as they are."""
        given = self._natural_params
        recorded = is_grad_enabled() and any(p.requires_grad for p in given)
        with enable_grad():
            parameters = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
            normalizer = self._log_normalizer(*parameters)
            expected = grad(normalizer.sum(), parameters, create_graph=recorded)
        return given, normalizer if recorded else normalizer.detach(), expected

    def entropy(self) -> Any:
        carrier = self._mean_carrier_measure
        if carrier is None:
            raise NotImplementedError
        parameters, normalizer, expected = self._statistics()
        shape = (*self._batch_shape, -1)
        for parameter, mean in zip(parameters, expected, strict=True):
            normalizer = normalizer - (parameter * mean).reshape(shape).sum(-1)
        return normalizer - carrier
