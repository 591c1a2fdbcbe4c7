"""The steps of Adadelta, Adamax, ASGD, NAdam and RAdam, in blocks as in :mod:`.optimizers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

from .optimizers import blocks, with_decay


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
    for arrays in zip(params, grads, square_avgs, acc_deltas, strict=True):
        for p, g, v, u, one, two in blocks(*arrays):
            g = with_decay(p, g, weight_decay, maximize, one)
            _mean_square(v, g, rho, two)
            ratio = np.sqrt(np.add(u, eps, two), two)
            np.divide(ratio, np.sqrt(v + eps), ratio)
            change = np.multiply(ratio, g, one)
            _mean_square(u, change, rho, two)
            np.subtract(p, np.multiply(change, lr, two), p)


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
    for step, *arrays in zip(steps, params, grads, exp_avgs, exp_infs, strict=True):
        rate = lr / (1 - beta1**step)
        for p, g, m, largest, one, two in blocks(*arrays):
            g = with_decay(p, g, weight_decay, maximize, one)
            _towards(m, g, 1 - beta1, two)
            np.add(np.abs(g, two), eps, two)
            np.maximum(np.multiply(largest, beta2, largest), two, out=largest)
            np.multiply(np.divide(m, largest, two), rate, two)
            np.subtract(p, two, p)


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
    for eta, mu, *arrays in zip(etas, mus, params, grads, axs, strict=True):
        for p, g, average, one, two in blocks(*arrays):
            g = with_decay(p, g, weight_decay, maximize, one)
            np.multiply(p, 1 - lambd * eta, p)
            np.subtract(p, np.multiply(g, eta, two), p)
            if mu == 1:
                average[...] = p
            else:
                _towards(average, p, mu, two)


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
    lists = zip(mu_products, steps, params, grads, exp_avgs, exp_avg_sqs, strict=True)
    for product, step, *arrays in lists:
        # The momentum grows towards beta1; see optim.nadam_momentum.
        now, following = [
            beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay)) for count in (step, step + 1)
        ]
        gradient_rate = lr * (1.0 - now) / (1.0 - product)
        average_rate = lr * following / (1.0 - product * following)
        for p, g, m, v, one, two in blocks(*arrays):
            g = _moments(p, g, m, v, lr, beta1, beta2, weight_decay, maximize, decoupled, one, two)
            denominator = np.sqrt(np.divide(v, 1 - beta2**step, two), two)
            np.add(denominator, eps, denominator)
            step_size = np.multiply(g, gradient_rate, one)
            np.add(step_size, m * average_rate, step_size)
            np.subtract(p, np.divide(step_size, denominator, step_size), p)


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
    longest = 2 / (1 - beta2) - 1
    for step, *arrays in zip(steps, params, grads, exp_avgs, exp_avg_sqs, strict=True):
        correction = 1 - beta2**step
        length = longest - 2 * step * beta2**step / correction
        rate = lr / (1 - beta1**step)
        if length > 5.0:
            known = (length - 4) * (length - 2) * longest
            rate *= (known / ((longest - 4) * (longest - 2) * length) * correction) ** 0.5
        for p, g, m, v, one, two in blocks(*arrays):
            _moments(p, g, m, v, lr, beta1, beta2, weight_decay, maximize, decoupled, one, two)
            np.multiply(m, rate, one)
            if length > 5.0:
                np.divide(one, np.add(np.sqrt(v, two), eps, two), one)
            np.subtract(p, one, p)


def _moments(
    p: Any, g: Any, m: Any, v: Any, lr: float, beta1: float, beta2: float, weight_decay: float,
    maximize: bool, decoupled: bool, one: Any, two: Any,
) -> Any:  # fmt: skip
    """Decay the weights and update both averages, as in Adam; return the gradient to go down along."""
    if decoupled and weight_decay != 0:
        np.multiply(p, 1 - lr * weight_decay, p)
    g = with_decay(p, g, 0 if decoupled else weight_decay, maximize, one)
    _towards(m, g, 1 - beta1, two)
    _mean_square(v, g, beta2, two)
    return g


def _towards(mean: Any, value: Any, share: float, scratch: Any) -> None:
    """Move a running mean by a share of the way to a value."""
    np.multiply(np.subtract(value, mean, scratch), share, scratch)
    np.add(mean, scratch, mean)


def _mean_square(mean: Any, value: Any, kept: float, scratch: Any) -> None:
    """Update the running mean of squares."""
    np.multiply(np.multiply(value, value, scratch), 1 - kept, scratch)
    np.add(np.multiply(mean, kept, mean), scratch, mean)


def build(table: KernelTable) -> None:
    """Add the kernels to `table`; half precision is left to the bodies, which round as torch does."""
    dtypes = [dtype_named("float32"), dtype_named("float64")]
    for step in (adadelta_step, adamax_step, asgd_step, nadam_step, radam_step):
        table.add(f"optim.{step.__name__}", step, dtypes=dtypes)
