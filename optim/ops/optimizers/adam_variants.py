"""The steps of Adamax, NAdam and RAdam as ops over lists of tensors; see :mod:`.fused`."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import maximum, where

from ...scalars import Scalar, add, add_quotient, correction, root


@composite(name="optim.adamax_step", method=False, writes="params, exp_avgs, exp_infs")
def adamax_step(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of Adamax.

    Parameters
    ----------
    params, exp_avgs, exp_infs : list of Tensor
        Written.
    grads : list of Tensor
        The gradients.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, beta1, beta2, weight_decay, eps, maximize
        The options of :class:`~tensorplug.optim.Adamax`.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        adamax_update(
            parameter, gradient, exp_avgs[i], exp_infs[i], steps[i],
            lr, beta1, beta2, weight_decay, eps, maximize,
        )  # fmt: skip


def adamax_update(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    largest: Tensor,
    step: Scalar,
    lr: Scalar,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`adamax_step` does."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    average.lerp_(gradient, 1 - beta1)
    largest.copy_(maximum(largest * beta2, gradient.abs().add_(eps)))
    if differentiable:  # later steps overwrite the averages that the derivative needs
        average, largest = average.clone(), largest.clone()
    add_quotient(parameter, average, largest, -lr / correction(beta1, step))


@composite(name="optim.nadam_step", method=False, writes="params, exp_avgs, exp_avg_sqs")
def nadam_step(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[float],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Take a step of NAdam.

    Parameters
    ----------
    params, exp_avgs, exp_avg_sqs : list of Tensor
        Written.
    grads : list of Tensor
        The gradients.
    mu_products : list of float
        The product of each parameter's momenta so far, :func:`nadam_momentum` of this step included.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, beta1, beta2, weight_decay, momentum_decay, eps, maximize
        The options of :class:`~tensorplug.optim.NAdam`.
    decoupled : bool
        Whether the decay shrinks the parameter, as in AdamW, or enters the gradient.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        nadam_update(
            parameter, gradient, exp_avgs[i], exp_avg_sqs[i], mu_products[i], steps[i],
            lr, beta1, beta2, weight_decay, momentum_decay, eps, maximize, decoupled,
        )  # fmt: skip


def nadam_momentum(step: Scalar, beta1: float, momentum_decay: float) -> Any:
    """Return the momentum of a step, which grows towards `beta1`."""
    return beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))


def nadam_update(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    square: Tensor,
    product: Scalar,
    step: Scalar,
    lr: Scalar,
    beta1: float,
    beta2: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`nadam_step` does."""
    gradient, average, square = _with_moments(
        parameter, gradient, average, square,
        lr, beta1, beta2, weight_decay, maximize, decoupled, differentiable,
    )  # fmt: skip
    momentum = nadam_momentum(step, beta1, momentum_decay)
    following = nadam_momentum(step + 1, beta1, momentum_decay)
    denominator = (square / correction(beta2, step)).sqrt() + eps
    add_quotient(parameter, gradient, denominator, -lr * (1.0 - momentum) / (1.0 - product))
    add_quotient(parameter, average, denominator, -lr * following / (1.0 - product * following))


@composite(name="optim.radam_step", method=False, writes="params, exp_avgs, exp_avg_sqs")
def radam_step(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Take a step of RAdam.

    Parameters
    ----------
    params, exp_avgs, exp_avg_sqs : list of Tensor
        Written.
    grads : list of Tensor
        The gradients.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, beta1, beta2, weight_decay, eps, maximize
        The options of :class:`~tensorplug.optim.RAdam`.
    decoupled : bool
        Whether the decay shrinks the parameter, as in AdamW, or enters the gradient.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        radam_update(
            parameter, gradient, exp_avgs[i], exp_avg_sqs[i], steps[i],
            lr, beta1, beta2, weight_decay, eps, maximize, decoupled,
        )  # fmt: skip


def radam_update(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    square: Tensor,
    step: Scalar,
    lr: Scalar,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
    differentiable: bool = False,
) -> None:
    """Update one parameter as :func:`radam_step` does."""
    _, average, square = _with_moments(
        parameter, gradient, average, square,
        lr, beta1, beta2, weight_decay, maximize, decoupled, differentiable,
    )  # fmt: skip
    correction2 = correction(beta2, step)
    longest = 2 / (1 - beta2) - 1
    length: Any = longest - 2 * step * beta2**step / correction2
    size = -lr / correction(beta1, step)
    if not isinstance(length, Tensor) and length <= 5.0:
        add(parameter, average, size)
        return
    rectification = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    denominator = square.sqrt() + eps
    if isinstance(length, Tensor):  # both are computed, as only the device knows which it is
        adapted = average / denominator * (rectification.clamp(min=0) * correction2).sqrt()
        add(parameter, where(length > 5.0, adapted, average), size)
    else:
        add_quotient(parameter, average, denominator, size * root(rectification * correction2))


def _with_moments(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    square: Tensor,
    lr: Scalar,
    beta1: float,
    beta2: float,
    weight_decay: float,
    maximize: bool,
    decoupled: bool,
    differentiable: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Decay the weights and update both averages, as in Adam; return what the step goes on with."""
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
    return gradient, average, square
