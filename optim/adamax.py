"""Adamax."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import counted, rate, started
from .groups import check_betas, check_learning_rate, check_range
from .ops.optimizers.adam_variants import adamax_step, adamax_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, count_step, number, step_lists


class Adamax(Optimizer):
    r"""Adamax: Adam with the largest recent gradient as the denominator.

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
    With gradient :math:`g` at step :math:`t`: :math:`m` as in Adam,
    :math:`u \leftarrow \max(\beta_2 u, |g| + \epsilon)`, then
    :math:`p \leftarrow p - \frac{lr}{1 - \beta_1^t} \cdot m / u` (Kingma and Ba, 2015, section 7).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adamax([x], lr=0.5)
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
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self._started(p, group) for p in parameters]
        params, grads, averages, largest = step_lists(parameters, states, "exp_avg", "exp_inf")
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        adamax_step(
            params, grads, averages, largest, [count_step(s) for s in states],
            number(group["lr"]), beta1, beta2, group["weight_decay"], group["eps"], group["maximize"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = started(parameter, group)
            state["exp_avg"] = zeros_like(parameter, requires_grad=False)
            state["exp_inf"] = zeros_like(parameter, requires_grad=False)
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        parameter, gradient, average, largest = as_real(
            (parameter, gradient, state["exp_avg"], state["exp_inf"])
        )
        adamax_update(
            parameter, gradient, average, largest, counted(state, parameter, group),
            rate(parameter, group), beta1, beta2, group["weight_decay"], group["eps"], group["maximize"],
            group["differentiable"],
        )  # fmt: skip
