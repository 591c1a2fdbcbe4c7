"""The steps of further optimizers, and those that count on the device, many tensors to a launch."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import FLOATS, KernelTable

from ... import sources
from ..._cupy import address
from ...dtypes import name_of
from .fused import batches, flags, numbers, take_step


def build(table: KernelTable) -> None:
    """Add the kernels to `table`."""
    for step in (
        adadelta_step, adamax_step, asgd_step, nadam_step, radam_step, rprop_step, sgd_step_on_device,
        adam_step_on_device,
    ):  # fmt: skip
        table.add(f"optim.{step.__name__}", step, dtypes=FLOATS)


def adadelta_step(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    acc_deltas: list[Any],
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of Adadelta."""
    options = (*numbers(rho, eps, weight_decay), *flags(maximize))
    written = [params, square_avgs, acc_deltas]
    take_step("adadelta_step", written, grads, options, rate=[lr] * len(params))


def adamax_step(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_infs: list[Any],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of Adamax."""
    rates = [lr / (1 - beta1**step) for step in steps]
    options = (*numbers(beta1, beta2, weight_decay, eps), *flags(maximize))
    take_step("adamax_step", [params, exp_avgs, exp_infs], grads, options, rate=rates)


def asgd_step(
    params: list[Any],
    grads: list[Any],
    axs: list[Any],
    etas: list[float],
    mus: list[float],
    lambd: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of averaged stochastic gradient descent."""
    options = (*numbers(lambd, weight_decay), *flags(maximize))
    take_step("asgd_step", [params, axs], grads, options, rate=etas, root=mus)


def nadam_step(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
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
    """Take a step of NAdam."""

    def momentum(step: float) -> float:
        return float(beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay)))

    each = list(zip(steps, mu_products, strict=True))
    rates = [lr * (1.0 - momentum(step)) / (1.0 - product) for step, product in each]
    further = [(momentum(step + 1), product) for step, product in each]
    more = [lr * following / (1.0 - product * following) for following, product in further]
    options = (
        *numbers(1 - lr * weight_decay, beta1, beta2, weight_decay, eps),
        *flags(maximize, decoupled and weight_decay != 0),
    )
    roots = [1 - beta2**step for step in steps]
    written = [params, exp_avgs, exp_avg_sqs]
    take_step("nadam_step", written, grads, options, rate=rates, root=roots, more=more)


def radam_step(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    steps: list[float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Take a step of RAdam."""
    rates = [lr / (1 - beta1**step) for step in steps]
    options = (
        *numbers(1 - lr * weight_decay, beta1, beta2, weight_decay, eps),
        *flags(maximize, decoupled and weight_decay != 0),
    )
    roots = [_rectification(step, beta2) for step in steps]
    written = [params, exp_avgs, exp_avg_sqs]
    take_step("radam_step", written, grads, options, rate=rates, root=roots)


def _rectification(step: float, beta2: float) -> float:
    """Return how far the variance is to be relied upon, with its correction; 0 where it is not."""
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    if length <= 5.0:
        return 0.0
    share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return float((share * correction) ** 0.5)


def rprop_step(
    params: list[Any],
    grads: list[Any],
    prevs: list[Any],
    step_sizes: list[Any],
    shrink: float,
    grow: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    """Take a step of Rprop."""
    options = (*numbers(shrink, grow, smallest, largest), *flags(maximize))
    take_step("rprop_step", [params, prevs, step_sizes], grads, options)


# --- counted on the device ------------------------------------------------------------------------


def sgd_step_on_device(
    params: list[Any],
    grads: list[Any],
    momentum_buffers: list[Any],
    rate: Any | None,
    found_inf: Any | None,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Take a step of stochastic gradient descent, unless `found_inf` is set."""
    options = (
        rate,
        found_inf,
        *numbers(lr, momentum, dampening, weight_decay),
        *flags(nesterov, maximize, first, bool(momentum_buffers)),
    )
    take_step("sgd_step_there", [params, momentum_buffers], grads, options)


def adam_step_on_device(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[Any],
    rate: Any | None,
    found_inf: Any | None,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """Count a step of Adam or AdamW and take it, unless `found_inf` is set."""
    for batch, blocks in batches([steps], {}):
        name = name_of(steps[0])
        sources.launch("optimizers", "count_steps", name, blocks, (batch, found_inf))
    options = (
        rate,
        found_inf,
        *numbers(lr, beta1, beta2, weight_decay, eps),
        *flags(amsgrad, maximize, decoupled),
    )
    written = [params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []]
    places = [address(step) for step in steps]
    take_step("adam_step_there", written, grads, options, step=places)
