"""The steps of Adadelta, Adafactor, ASGD and Rprop as ops over lists of tensors; see :mod:`.fused`.

These four choose the size of a step themselves: their learning rate only starts, bounds or scales it.
"""

from __future__ import annotations

from tensorplug.core import Tensor
from tensorplug.core.dispatch.op_registry import composite
from tensorplug.core.ops import ones_like

from ...scalars import Scalar, add


@composite(name="optim.adadelta_step", method=False, writes="params, square_avgs, acc_deltas")
def adadelta_step(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of Adadelta.

    Parameters
    ----------
    params, square_avgs, acc_deltas : list of Tensor
        Written.
    grads : list of Tensor
        The gradients.
    lr, rho, eps, weight_decay, maximize
        The options of :class:`~tensorplug.optim.Adadelta`.
    """
    for arguments in zip(params, grads, square_avgs, acc_deltas, strict=True):
        adadelta_update(*arguments, lr, rho, eps, weight_decay, maximize)


def adadelta_update(
    parameter: Tensor,
    gradient: Tensor,
    square: Tensor,
    accumulated: Tensor,
    lr: Scalar,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update one parameter as :func:`adadelta_step` does."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    square.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
    change = (accumulated + eps).sqrt() / (square + eps).sqrt() * gradient
    accumulated.mul_(rho).addcmul_(change, change, value=1 - rho)
    add(parameter, change, -lr)


@composite(
    name="optim.adafactor_step", method=False, writes="params, row_vars, col_vars, variances"
)
def adafactor_step(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor],
    col_vars: list[Tensor],
    variances: list[Tensor],
    steps: list[float],
    lr: float,
    beta2_decay: float,
    eps1: float,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of Adafactor.

    Parameters
    ----------
    params, row_vars, col_vars, variances : list of Tensor
        Written. For parameters of two or more dimensions `variances` is empty; for others the rows and
        columns are. Those of one parameter have different shapes.
    grads : list of Tensor
        The gradients.
    steps : list of float
        The number of each parameter's step, 1 for its first.
    lr, beta2_decay, eps1, eps2, d, weight_decay, maximize
        The options of :class:`~tensorplug.optim.Adafactor`, with both epsilons given.
    """
    for i, (parameter, gradient) in enumerate(zip(params, grads, strict=True)):
        state = (variances[i],) if variances else (row_vars[i], col_vars[i])
        adafactor_update(
            parameter, gradient, state, steps[i],
            lr, beta2_decay, eps1, eps2, d, weight_decay, maximize,
        )  # fmt: skip


def adafactor_update(
    parameter: Tensor,
    gradient: Tensor,
    state: tuple[Tensor, ...],
    step: float,
    lr: float,
    beta2_decay: float,
    eps1: float,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update one parameter as :func:`adafactor_step` does; the state is a variance, or rows and columns."""
    if parameter.numel() == 0:
        return  # it has no mean square
    if maximize:
        gradient = -gradient
    rate = max(eps2, _root_mean_square(parameter)) * min(lr, step**-0.5)
    if weight_decay != 0:
        parameter.mul_(1 - lr * weight_decay)
    forgotten = step**beta2_decay
    square = gradient.square()
    if len(state) == 2:
        rows, columns = state
        rows.lerp_(square.mean(-1, keepdim=True), forgotten)
        columns.lerp_(square.mean(-2, keepdim=True), forgotten)
        variance = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=eps1))
    else:
        variance = state[0].lerp_(square, forgotten)
    update = gradient * variance.clamp(min=eps1 * eps1).rsqrt()
    clipped = max(1.0, _root_mean_square(update) / d)
    parameter.add_(update, alpha=-rate / clipped)


def _root_mean_square(tensor: Tensor) -> float:
    return float(tensor.norm(2).item()) / float(tensor.numel()) ** 0.5


@composite(name="optim.asgd_step", method=False, writes="params, axs")
def asgd_step(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    etas: list[float],
    mus: list[float],
    lambd: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of averaged stochastic gradient descent.

    Parameters
    ----------
    params, axs : list of Tensor
        Written. `axs` are the averages.
    grads : list of Tensor
        The gradients.
    etas, mus : list of float
        Each parameter's learning rate in this step, and what its average moves by; 1 sets the average.
    lambd, weight_decay, maximize
        The options of :class:`~tensorplug.optim.ASGD`.
    """
    for arguments in zip(params, grads, axs, etas, mus, strict=True):
        asgd_update(*arguments, lambd, weight_decay, maximize)


def asgd_update(
    parameter: Tensor,
    gradient: Tensor,
    average: Tensor,
    eta: Scalar,
    mu: Scalar,
    lambd: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update one parameter as :func:`asgd_step` does."""
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    parameter.mul_(1 - lambd * eta)
    add(parameter, gradient, -eta)
    if isinstance(mu, Tensor):
        average.lerp_(parameter, mu.to(parameter.dtype))
    elif mu == 1:
        average.copy_(parameter)
    else:
        average.add_(parameter - average, alpha=mu)


@composite(name="optim.rprop_step", method=False, writes="params, prevs, step_sizes")
def rprop_step(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    shrink: float,
    grow: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    """Take a step of Rprop.

    Parameters
    ----------
    params, prevs, step_sizes : list of Tensor
        Written. `prevs` are the gradients of the previous step, 0 where they turned.
    grads : list of Tensor
        The gradients.
    shrink, grow, smallest, largest, maximize
        The options of :class:`~tensorplug.optim.Rprop`: its etas and the bounds of its step sizes.
    """
    for arguments in zip(params, grads, prevs, step_sizes, strict=True):
        rprop_update(*arguments, shrink, grow, smallest, largest, maximize)


def rprop_update(
    parameter: Tensor,
    gradient: Tensor,
    previous: Tensor,
    size: Tensor,
    shrink: float,
    grow: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    """Update one parameter as :func:`rprop_step` does."""
    if maximize:
        gradient = -gradient
    agreement = gradient * previous
    turned = agreement < 0
    factor = ones_like(size).masked_fill_(agreement > 0, grow).masked_fill_(turned, shrink)
    size.mul_(factor).clamp_(smallest, largest)
    gradient = gradient.masked_fill(turned, 0)  # no step, and no verdict in the next one
    # Only the sign counts, of which the derivative is zero; what is kept is the gradient itself.
    parameter.addcmul_(gradient.detach().sign(), size, value=-1)
    previous.copy_(gradient)
