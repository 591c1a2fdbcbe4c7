"""Steps that are counted, and may be skipped, on the device; see :mod:`.fused`.

The host waits for nothing of them: the learning rate may be a tensor, and so are Adam's count of steps, and
whether scaled gradients were finite. So they can be captured in a graph, and a scaler needs no look at the
device. Kernels are called with the arguments below; tensors of one number are 0-d arrays of float32.

========================= ========================================================================
op                        kernel's arguments
========================= ========================================================================
optim.sgd_step_on_device  params, grads, momentum_buffers, rate, found_inf, lr, momentum,
                          dampening, weight_decay, nesterov, maximize, first
optim.adam_step_on_device params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, rate,
                          found_inf, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                          decoupled
========================= ========================================================================
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.device.dtypes import float32
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import maximum, where

from ...scalars import correction, root
from .fused import sgd_update


@contextmanager
def _unless(found_inf: Tensor | None, *lists: list[Tensor]) -> Generator[None, None, None]:
    """Undo what happens to tensors within, if `found_inf` is not zero."""
    before = [] if found_inf is None else [[t.clone() for t in tensors] for tensors in lists]
    yield
    if found_inf is not None:
        skipped = found_inf != 0
        for tensors, kept in zip(lists, before, strict=True):
            for tensor, old in zip(tensors, kept, strict=True):
                tensor.copy_(where(skipped, old, tensor))


@composite(
    name="optim.sgd_step_on_device", method=False, mixed=True, writes="params, momentum_buffers"
)
def sgd_step_on_device(
    params: list[Tensor],
    grads: list[Tensor],
    momentum_buffers: list[Tensor],
    rate: Tensor | None,
    found_inf: Tensor | None,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Take a step of stochastic gradient descent, unless `found_inf` is not zero.

    Parameters
    ----------
    params, grads, momentum_buffers, lr, momentum, dampening, weight_decay, nesterov, maximize, first
        As for :func:`~tensorplug.optim.ops.optimizers.fused.sgd_step`.
    rate : Tensor, optional
        (), float32: the learning rate, in place of `lr`.
    found_inf : Tensor, optional
        (), float32.
    """
    with _unless(found_inf, params, momentum_buffers):
        for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
            buffer = momentum_buffers[i] if momentum_buffers else None
            sgd_update(
                parameter, gradient, buffer, lr if rate is None else rate.to(parameter.dtype),
                momentum, dampening, weight_decay, nesterov, maximize, first,
            )  # fmt: skip


@composite(
    name="optim.adam_step_on_device",
    method=False,
    mixed=True,
    writes="params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps",
)
def adam_step_on_device(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    rate: Tensor | None,
    found_inf: Tensor | None,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Count a step of Adam or AdamW and take it, unless `found_inf` is not zero.

    Parameters
    ----------
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs
        As for :func:`~tensorplug.optim.ops.optimizers.fused.adam_step`, and so the options after `found_inf`.
    steps : list of Tensor
        (), float32 each: how many steps each parameter has taken so far. Written.
    rate : Tensor, optional
        (), float32: the learning rate, in place of `lr`.
    found_inf : Tensor, optional
        (), float32.
    """
    with _unless(found_inf, params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps):
        for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
            dtype = parameter.dtype
            step = steps[i].add_(1).to(dtype)
            size: Any = lr if rate is None else rate.to(dtype)
            if maximize:
                gradient = -gradient
            if weight_decay != 0 and decoupled:
                parameter.mul_(1 - size * weight_decay)
            elif weight_decay != 0:
                gradient = gradient.add(parameter, alpha=weight_decay)
            exp_avgs[i].lerp_(gradient, 1 - beta1)
            square = exp_avg_sqs[i].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            if amsgrad:
                square = max_exp_avg_sqs[i].copy_(maximum(max_exp_avg_sqs[i], square))
            denominator = (square.sqrt() / root(correction(beta2, step))).add_(eps)
            parameter.sub_(exp_avgs[i] / denominator * (size / correction(beta1, step)))


def rate_of(lr: float | Tensor, parameter: Tensor) -> tuple[Tensor | None, float]:
    """Return the learning rate as a tensor on a parameter's device, or else as a number."""
    if not isinstance(lr, Tensor):
        return None, float(lr)
    return lr.detach().reshape(()).to(parameter.device, float32), 0.0


ON_DEVICE: tuple[Any, ...] = (sgd_step_on_device, adam_step_on_device)
