"""NAdam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .groups import check_betas, check_learning_rate, check_range
from .optimizer import Optimizer, ParamsT
from .state import count_step, number, scalar, update_moments


class NAdam(Optimizer):
    r"""NAdam: Adam with Nesterov's look-ahead.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    betas : pair of float
        The decay rates of the averages of the gradient and of its size.
    eps : float
        Added to the denominator.
    weight_decay : float
        The factor of the L2 penalty.
    momentum_decay : float
        How fast the momentum grows to its full value.
    decoupled_weight_decay : bool
        Shrink the parameter directly, as :class:`~tensorplug.optim.AdamW` does.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Accepted for torch's sake. Every tensor is updated by a few in-place ops, whatever it says.
    capturable : bool
        Accepted for torch's sake: whether a step can be captured in a graph is up to the backend.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With :math:`\mu_t = \beta_1 (1 - 0.5 \cdot 0.96^{t \psi})`, the step combines the gradient,
    weighted :math:`(1 - \mu_t) / (1 - \prod_{i \le t} \mu_i)`, with the average, weighted
    :math:`\mu_{t+1} / (1 - \prod_{i \le t+1} \mu_i)` (Dozat, 2016).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.NAdam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check_range(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        if not state:
            state["step"] = scalar(0.0)
            state["mu_product"] = scalar(1.0)
            state["exp_avg"] = zeros_like(parameter)
            state["exp_avg_sq"] = zeros_like(parameter)
        step = count_step(state)
        parameter, gradient, average, square = update_moments(parameter, gradient, state, group)
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        growth = group["momentum_decay"]
        momentum = beta1 * (1.0 - 0.5 * 0.96 ** (step * growth))
        following = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * growth))
        state["mu_product"] *= momentum
        product = number(state["mu_product"])
        denominator = (square / (1 - beta2**step)).sqrt() + group["eps"]
        parameter.addcdiv_(gradient, denominator, value=-lr * (1.0 - momentum) / (1.0 - product))
        parameter.addcdiv_(
            average, denominator, value=-lr * following / (1.0 - product * following)
        )
