"""NAdam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import Amount, counted, counts_there, kept_there, rate, started
from .groups import check_betas, check_learning_rate, check_range
from .ops.optimizers.adam_variants import nadam_momentum, nadam_step, nadam_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, step_lists


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
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    capturable : bool
        Count the steps on the device, so that a step can be captured in a graph.
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

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        params, grads, averages, squares = step_lists(parameters, states, "exp_avg", "exp_avg_sq")
        counts = [self._count(s, group) for s in states]
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        nadam_step(
            params, grads, averages, squares, [p for p, _ in counts], [step for _, step in counts],
            number(group["lr"]), beta1, beta2, group["weight_decay"], group["momentum_decay"],
            group["eps"], group["maximize"], group["decoupled_weight_decay"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["mu_product"] = started(parameter, group, 1.0)
            state["exp_avg"] = zeros_like(parameter, requires_grad=False)
            state["exp_avg_sq"] = zeros_like(parameter, requires_grad=False)
        return state

    def _count(self, state: dict[str, Any], group: dict[str, Any]) -> tuple[float, float]:
        """Return the product of the momenta, and the number of the step that begins."""
        step = count_step(state)
        beta1 = number(group["betas"][0])
        state["mu_product"] *= nadam_momentum(step, beta1, group["momentum_decay"])
        return number(state["mu_product"]), step

    def _count_one(
        self, parameter: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> tuple[Amount, Amount]:
        """Return the same, on the parameter's device if its steps are counted there."""
        if not counts_there(parameter, group):
            return self._count(state, group)
        step = counted(state, parameter, group)
        momentum = nadam_momentum(step, number(group["betas"][0]), group["momentum_decay"])
        return kept_there(state, "mu_product", parameter).mul_(momentum), step

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        parameter, gradient, average, square = as_real(
            (parameter, gradient, state["exp_avg"], state["exp_avg_sq"])
        )
        nadam_update(
            parameter, gradient, average, square,
            *self._count_one(parameter, state, group),
            rate(parameter, group), beta1, beta2, group["weight_decay"], group["momentum_decay"],
            group["eps"], group["maximize"], group["decoupled_weight_decay"], group["differentiable"],
        )  # fmt: skip
