"""The ops of the gradient scaler, over lists of tensors, so that a backend may do each in one kernel.

Kernels get raw arrays: ``amp.unscale(grads, found_inf, inverse)`` and
``amp.update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)``. What
they return is not looked at.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import maximum, where


@composite(name="amp.unscale", method=False, mixed=True, writes="grads, found_inf")
def unscale(grads: list[Tensor], found_inf: Tensor, inverse: Tensor) -> None:
    """Multiply gradients by the inverse of the scale, and note whether any was infinite or NaN.

    Parameters
    ----------
    grads : list of Tensor
        Written.
    found_inf : Tensor
        (), float32. Becomes 1 if an element is not finite.
    inverse : Tensor
        (), float32.
    """
    for grad in grads:
        bad = grad.isfinite().all().logical_not().to(found_inf.dtype)
        found_inf.copy_(maximum(found_inf, bad))
        grad.mul_(inverse)


@composite(name="amp.update_scale", method=False, writes="scale, growth_tracker")
def update_scale(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> None:
    """Lower the scale after a step that was skipped, raise it after many that were not.

    Parameters
    ----------
    scale : Tensor
        (), float32. Written.
    growth_tracker : Tensor
        (), int32: the number of steps in a row that were taken. Written.
    found_inf : Tensor
        (), float32: whether this step was skipped.
    growth_factor, backoff_factor : float
        By what the scale is multiplied.
    growth_interval : int
        After how many steps in a row it grows.
    """
    bad = found_inf != 0
    taken = growth_tracker + 1
    grows = taken == growth_interval
    larger = scale * growth_factor
    larger = where(grows & larger.isfinite(), larger, scale)
    scale.copy_(where(bad, scale * backoff_factor, larger))
    growth_tracker.copy_(where(bad | grows, 0, taken))


OPS: tuple[Any, ...] = (unscale, update_scale)
