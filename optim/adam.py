"""Adam."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import is_there, kept_there
from .groups import (
    check_betas,
    check_fused,
    check_implementation,
    check_learning_rate,
    check_range,
)
from .ops.optimizers.fused import adam_step, adam_update
from .ops.optimizers.on_device import adam_step_on_device, rate_of
from .optimizer import Optimizer, ParamsT
from .state import as_real, as_real_lists, count_step, number, scalar


class Adam(Optimizer):
    r"""Adam: steps scaled by running averages of the gradient and its square.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    betas : pair of float
        The decay rates of the averages of the gradient and of its square.
    eps : float
        Added to the denominator.
    weight_decay : float
        The factor of the L2 penalty, or of the decay itself with `decoupled_weight_decay`.
    amsgrad : bool
        Divide by the largest average of the square so far (Reddi et al., 2018).
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same; True asks for floating-point parameters, and counts the steps on the device, so that a
        :class:`~tensorplug.amp.GradScaler` does not wait for it.
    capturable : bool
        Count the steps on the device, so that a step can be captured in a graph.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.
    decoupled_weight_decay : bool
        Shrink the parameter directly, as :class:`~tensorplug.optim.AdamW` does.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g` at step :math:`t`: :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g`,
    :math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, then
    :math:`p \leftarrow p - lr \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}`
    (Kingma and Ba, 2015).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([3.5000], requires_grad=True)
    """

    _skips_on_device = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_range(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check_implementation(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self.param_groups)

    _counts_together = True

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        states = [self._started(p, group) for p in parameters]
        largest = [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []
        params, grads, averages, squares, largest = as_real_lists(
            parameters,
            [p.grad for p in parameters],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            largest,
        )
        found = self.found_inf_of(parameters[0])
        if found is not None or is_there(states[0]["step"]):
            rate, lr = rate_of(group["lr"], parameters[0])
            steps = [kept_there(s, "step", parameters[0]) for s in states]
            adam_step_on_device(
                params, grads, averages, squares, largest, steps,
                rate, found, lr, beta1, beta2, group["weight_decay"], group["eps"],
                group["amsgrad"], group["maximize"], group["decoupled_weight_decay"],
            )  # fmt: skip
            return
        adam_step(
            params, grads, averages, squares, largest, [count_step(s) for s in states],
            number(group["lr"]), beta1, beta2, group["weight_decay"], group["eps"],
            group["amsgrad"], group["maximize"], group["decoupled_weight_decay"],
        )  # fmt: skip

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, which is zero at first."""
        state: dict[str, Any] = self.state[parameter]
        if not state:
            there = group["fused"] or group["capturable"]
            state["step"] = scalar(0.0, parameter.device) if there else scalar(0.0)
            state["exp_avg"] = zeros_like(parameter, requires_grad=False)
            state["exp_avg_sq"] = zeros_like(parameter, requires_grad=False)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(parameter, requires_grad=False)
        return state

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        state = self._started(parameter, group)
        if is_there(state["step"]) and not group["differentiable"]:
            self.update_together([parameter], group)
            return
        largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
        parameter, gradient, average, square, largest = as_real(
            (parameter, gradient, state["exp_avg"], state["exp_avg_sq"], largest)
        )
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        adam_update(
            parameter, gradient, average, square, largest, count_step(state),
            group["lr"], beta1, beta2,
            group["weight_decay"], group["eps"], group["maximize"],
            group["decoupled_weight_decay"], group["differentiable"],
        )  # fmt: skip
