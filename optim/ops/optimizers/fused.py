"""The steps of optimizers as ops over lists of tensors, which a backend can do in one kernel.

Each op changes the tensors in its first lists and returns nothing. The lists are of equal length: one entry
per parameter, all on one device; a list that the options leave unused is empty. The body updates one tensor
after the other and runs on every device.

A kernel for one of these ops is called with the op's arguments in order: **lists of raw arrays** where the op
takes tensors, plain numbers else. It is asked for only if all arrays have the dtype that it is registered
for (complex ones come as real, with a last dimension of 2). It writes into the arrays of the lists that the
op's docstring calls written; the arrays of one parameter have one shape (except in Adafactor), but any
strides. What it returns is not looked at. ``grads`` are never written.

===================== ==========================================================================
op                    kernel's arguments
===================== ==========================================================================
optim.sgd_step        params, grads, momentum_buffers, lr, momentum, dampening, weight_decay,
                      nesterov, maximize, first
optim.adam_step       params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1,
                      beta2, weight_decay, eps, amsgrad, maximize, decoupled
optim.adagrad_step    params, grads, state_sums, steps, lr, lr_decay, weight_decay, eps, maximize
optim.rmsprop_step    params, grads, square_avgs, grad_avgs, momentum_buffers, lr, alpha, eps,
                      weight_decay, momentum, centered, maximize
optim.adadelta_step   params, grads, square_avgs, acc_deltas, lr, rho, eps, weight_decay, maximize
optim.adafactor_step  params, grads, row_vars, col_vars, variances, steps, lr, beta2_decay,
                      eps1, eps2, d, weight_decay, maximize
optim.adamax_step     params, grads, exp_avgs, exp_infs, steps, lr, beta1, beta2, weight_decay,
                      eps, maximize
optim.asgd_step       params, grads, axs, etas, mus, lambd, weight_decay, maximize
optim.nadam_step      params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, lr, beta1, beta2,
                      weight_decay, momentum_decay, eps, maximize, decoupled
optim.radam_step      params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2,
                      weight_decay, eps, maximize, decoupled
optim.rprop_step      params, grads, prevs, step_sizes, shrink, grow, smallest, largest, maximize
===================== ==========================================================================

A package with kernels for them is an extension (entry point ``extension.…``) that imports
``tensorplug.optim`` first, which registers the ops.
"""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import maximum

from ...scalars import Scalar, add, add_quotient
from ...state import number
from .adam_variants import adamax_step, nadam_step, radam_step
from .own_rates import adadelta_step, adafactor_step, asgd_step, rprop_step


@composite(name="optim.sgd_step", method=False, writes="params, momentum_buffers")
def sgd_step(
    params: list[Tensor],
    grads: list[Tensor],
    momentum_buffers: list[Tensor],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Take a step of stochastic gradient descent.

    Parameters
    ----------
    params, momentum_buffers : list of Tensor
        Written. Without momentum there are no buffers.
    grads : list of Tensor
        The gradients.
    lr, momentum, dampening, weight_decay, nesterov, maximize
        The options of :class:`~tensorplug.optim.SGD`.
    first : bool
        Whether the buffers hold nothing yet: they become the gradients (with weight decay).
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        buffer = momentum_buffers[i] if momentum_buffers else None
        sgd_update(
            parameter, gradient, buffer,
            lr, momentum, dampening, weight_decay, nesterov, maximize, first,
        )  # fmt: skip


def sgd_update(
    parameter: Tensor,
    gradient: Tensor,
    buffer: Tensor | None,
    lr: float | Tensor,
    momentum: float,
    dampening: float,
    weight_decay: float | Tensor,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Update one parameter as :func:`sgd_step` does."""
    if maximize:
        gradient = -gradient
    if isinstance(weight_decay, Tensor):
        gradient = gradient + weight_decay * parameter
    elif weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    if buffer is not None:
        if first:
            buffer.copy_(gradient)
        else:
            buffer.mul_(momentum).add_(gradient, alpha=1 - dampening)
        gradient = gradient.add(buffer, alpha=momentum) if nesterov else buffer
    if isinstance(lr, Tensor):
        parameter.sub_(gradient * lr)
    else:
        parameter.add_(gradient, alpha=-lr)


@composite(
    name="optim.adam_step",
    method=False,
    writes="params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs",
)
def adam_step(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Take a step of Adam, or of AdamW.

    Parameters
    ----------
    params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs : list of Tensor
        Written. `max_exp_avg_sqs` is empty without `amsgrad`.
    grads : list of Tensor
        The gradients.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, beta1, beta2, weight_decay, eps, amsgrad, maximize
        The options of :class:`~tensorplug.optim.Adam`.
    decoupled : bool
        Whether the decay shrinks the parameter, as in AdamW, or enters the gradient.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        largest = max_exp_avg_sqs[i] if amsgrad else None
        adam_update(
            parameter, gradient, exp_avgs[i], exp_avg_sqs[i], largest, steps[i],
            lr, beta1, beta2, weight_decay, eps, maximize, decoupled,
        )  # fmt: skip


def adam_update(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    square: Tensor,
    largest: Tensor | None,
    step: float,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`adam_step` does."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        if decoupled:
            parameter.mul_(1 - lr * weight_decay)
        else:
            gradient = gradient.add(parameter, alpha=weight_decay)
    average.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    if differentiable:  # later steps overwrite the averages that the derivative needs
        average, square = average.clone(), square.clone()
    if largest is not None:
        square = maximum(largest.clone() if differentiable else largest, square)
        largest.copy_(square)
    root = (1 - beta2**step) ** 0.5
    correction = 1 - beta1**step
    denominator = square.sqrt()
    if differentiable:
        denominator = denominator / root + eps
    else:
        denominator.div_(root).add_(eps)
    if differentiable and isinstance(lr, Tensor):
        parameter.sub_(average / denominator * (lr / correction))
    else:
        parameter.addcdiv_(average, denominator, value=-number(lr) / correction)


@composite(name="optim.adagrad_step", method=False, writes="params, state_sums")
def adagrad_step(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    steps: list[float],
    lr: float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of Adagrad.

    Parameters
    ----------
    params, state_sums : list of Tensor
        Written.
    grads : list of Tensor
        The gradients.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, lr_decay, weight_decay, eps, maximize
        The options of :class:`~tensorplug.optim.Adagrad`.
    """
    for parameter, gradient, total, step in zip(params, grads, state_sums, steps, strict=True):
        rate = lr / (1 + (step - 1) * lr_decay)
        adagrad_update(parameter, gradient, total, rate, weight_decay, eps, maximize)


def adagrad_update(
    parameter: Tensor,
    gradient: Tensor,
    total: Tensor,
    rate: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`adagrad_step` does, with the decayed learning rate."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    total.addcmul_(gradient, gradient)
    if differentiable:
        total = total.clone()
    parameter.addcdiv_(gradient, total.sqrt().add(eps), value=-rate)


@composite(
    name="optim.rmsprop_step",
    method=False,
    writes="params, square_avgs, grad_avgs, momentum_buffers",
)
def rmsprop_step(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffers: list[Tensor],
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """Take a step of RMSprop.

    Parameters
    ----------
    params, square_avgs, grad_avgs, momentum_buffers : list of Tensor
        Written. `grad_avgs` is empty unless `centered`, `momentum_buffers` without momentum.
    grads : list of Tensor
        The gradients.
    lr, alpha, eps, weight_decay, momentum, centered, maximize
        The options of :class:`~tensorplug.optim.RMSprop`.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        mean = grad_avgs[i] if centered else None
        buffer = momentum_buffers[i] if momentum > 0 else None
        rmsprop_update(
            parameter, gradient, square_avgs[i], mean, buffer,
            lr, alpha, eps, weight_decay, momentum, maximize,
        )  # fmt: skip


def rmsprop_update(
    parameter: Tensor,
    gradient: Tensor,
    square: Tensor,
    mean: Tensor | None,
    buffer: Tensor | None,
    lr: Scalar,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    maximize: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`rmsprop_step` does."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
    # Later steps overwrite the averages that the derivative needs.
    variance = square.clone() if differentiable else square
    if mean is not None:
        mean.lerp_(gradient, 1 - alpha)
        mean = mean.clone() if differentiable else mean
        variance = square.addcmul(mean, mean, value=-1)
    denominator = variance.sqrt().add(eps)
    if buffer is not None:
        buffer.mul_(momentum).addcdiv_(gradient, denominator)
        add(parameter, buffer, -lr)
    else:
        add_quotient(parameter, gradient, denominator, -lr)


FUSED: tuple[Any, ...] = (
    sgd_step, adam_step, adagrad_step, rmsprop_step, adadelta_step, adafactor_step, adamax_step,
    asgd_step, nadam_step, radam_step, rprop_step,
)  # fmt: skip
