"""The steps of optimizers over lists of arrays, without a temporary array per operation.

Each array is worked on in blocks that stay in the cache, since a step does little with much memory: every
element of the parameter, its gradient and the state is then read from memory once instead of once per
operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.plugin import KernelTable, dtype_named

# Six arrays of this many float32 numbers take 800 kB, less than most second-level caches; smaller blocks are
# slower, as each call of NumPy costs half a microsecond.
BLOCK = 32768


def blocks(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the corresponding parts of arrays of one shape, and a scratch array of that shape for each.

    The scratch arrays hold anything, and are the same for each block.
    """
    first = arrays[0]
    whole = all([array.flags.c_contiguous for array in arrays])
    if first.size <= BLOCK or not whole:
        yield (*arrays, np.empty(first.shape, first.dtype), np.empty(first.shape, first.dtype))
        return
    flat = [array.reshape(-1) for array in arrays]
    one, two = np.empty(BLOCK, first.dtype), np.empty(BLOCK, first.dtype)
    for start in range(0, first.size, BLOCK):
        parts = [array[start : start + BLOCK] for array in flat]
        size = parts[0].size
        yield (*parts, one[:size], two[:size])


def with_decay(p: Any, g: Any, weight_decay: float, maximize: bool, scratch: Any) -> Any:
    """Return the gradient to go down along."""
    if weight_decay != 0:
        np.multiply(p, weight_decay, scratch)
        return (np.subtract if maximize else np.add)(scratch, g, scratch)
    return np.negative(g, scratch) if maximize else g


def sgd_step(
    params: list[Any],
    grads: list[Any],
    momentum_buffers: list[Any],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    """Take a step of stochastic gradient descent."""
    if not momentum_buffers:
        for parameter, gradient in zip(params, grads, strict=True):
            for p, g, one, two in blocks(parameter, gradient):
                g = with_decay(p, g, weight_decay, maximize, one)
                np.subtract(p, np.multiply(g, lr, two), p)
        return
    for arrays in zip(params, grads, momentum_buffers, strict=True):
        for p, g, b, one, two in blocks(*arrays):
            g = with_decay(p, g, weight_decay, maximize, one)
            if first:
                b[...] = g
            else:
                np.multiply(b, momentum, b)
                np.add(b, g if dampening == 0 else np.multiply(g, 1 - dampening, two), b)
            if nesterov:
                g = np.add(g, np.multiply(b, momentum, two), two)
            else:
                g = b
            np.subtract(p, np.multiply(g, lr, two), p)


def adam_step(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
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
    """Take a step of Adam, or of AdamW."""
    for i, arrays in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, strict=True)):
        rate = lr / (1 - beta1 ** steps[i])
        root = (1 - beta2 ** steps[i]) ** 0.5
        largest = (max_exp_avg_sqs[i],) if amsgrad else ()
        for p, g, m, v, *most, one, two in blocks(*arrays, *largest):
            if decoupled:
                if weight_decay != 0:
                    np.multiply(p, 1 - lr * weight_decay, p)
                g = with_decay(p, g, 0, maximize, one)
            else:
                g = with_decay(p, g, weight_decay, maximize, one)
            np.subtract(g, m, two)
            np.multiply(two, 1 - beta1, two)
            np.add(m, two, m)
            np.multiply(g, g, two)
            np.multiply(two, 1 - beta2, two)
            np.multiply(v, beta2, v)
            np.add(v, two, v)
            if most:
                np.maximum(most[0], v, out=most[0])
            np.sqrt(most[0] if most else v, two)
            np.divide(two, root, two)
            np.add(two, eps, two)
            np.divide(m, two, two)
            np.multiply(two, rate, two)
            np.subtract(p, two, p)


def adagrad_step(
    params: list[Any],
    grads: list[Any],
    state_sums: list[Any],
    steps: list[float],
    lr: float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of Adagrad."""
    for step, *arrays in zip(steps, params, grads, state_sums, strict=True):
        rate = lr / (1 + (step - 1) * lr_decay)
        for p, g, total, one, two in blocks(*arrays):
            g = with_decay(p, g, weight_decay, maximize, one)
            np.add(total, np.multiply(g, g, two), total)
            np.sqrt(total, two)
            np.add(two, eps, two)
            np.divide(g, two, two)
            np.subtract(p, np.multiply(two, rate, two), p)


def rmsprop_step(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    momentum_buffers: list[Any],
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """Take a step of RMSprop."""
    for i, arrays in enumerate(zip(params, grads, square_avgs, strict=True)):
        more = ((grad_avgs[i],) if centered else ()) + (
            (momentum_buffers[i],) if momentum > 0 else ()
        )
        for p, g, v, *state, one, two in blocks(*arrays, *more):
            g = with_decay(p, g, weight_decay, maximize, one)
            np.multiply(v, alpha, v)
            np.multiply(g, g, two)
            np.multiply(two, 1 - alpha, two)
            np.add(v, two, v)
            if centered:
                mean = state[0]
                np.subtract(g, mean, two)
                np.multiply(two, 1 - alpha, two)
                np.add(mean, two, mean)
                np.multiply(mean, mean, two)
                np.subtract(v, two, two)
                np.sqrt(two, two)
            else:
                np.sqrt(v, two)
            np.add(two, eps, two)
            np.divide(g, two, two)
            if momentum > 0:
                buffer = state[-1]
                np.multiply(buffer, momentum, buffer)
                np.add(buffer, two, buffer)
                np.multiply(buffer, lr, two)
            else:
                np.multiply(two, lr, two)
            np.subtract(p, two, p)


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


_STEPS = (
    sgd_step,
    adam_step,
    adagrad_step,
    rmsprop_step,
    adadelta_step,
    adamax_step,
    asgd_step,
    nadam_step,
    radam_step,
)


def build(table: KernelTable) -> None:
    """Add the kernels to `table`; half precision is left to the bodies, which round as torch does."""
    dtypes = [dtype_named("float32"), dtype_named("float64")]
    for step in _STEPS:
        table.add(f"optim.{step.__name__}", step, dtypes=dtypes)
