"""Adagrad."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import full_like

from .groups import (
    check_fused,
    check_implementation,
    check_learning_rate,
    check_range,
)
from .ops.optimizers.fused import adagrad_step, adagrad_update
from .optimizer import Optimizer, ParamsT
from .state import as_real, as_real_lists, count_step, number, scalar


class Adagrad(Optimizer):
    r"""Adagrad: the gradient divided by the root of the sum of its squares so far.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    lr_decay : float
        How fast the learning rate falls with the steps.
    weight_decay : float
        The factor of the L2 penalty.
    initial_accumulator_value : float
        What the sums start with.
    eps : float
        Added to the denominator.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same, for torch's sake; True asks for floating-point parameters.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g` at step :math:`t`: :math:`s \leftarrow s + g^2` and
    :math:`p \leftarrow p - \frac{lr}{1 + (t - 1) \eta} \cdot g / (\sqrt{s} + \epsilon)`
    (Duchi, Hazan and Singer, 2011).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.Adagrad([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> bool(x < 4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_range(lr_decay >= 0.0, "lr_decay value", lr_decay)
        check_range(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check_range(
            initial_accumulator_value >= 0.0,
            "initial_accumulator_value value",
            initial_accumulator_value,
        )
        check_range(eps >= 0.0, "epsilon value", eps)
        check_implementation(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self.param_groups)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; their sums start at once, as in torch."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        initial = group["initial_accumulator_value"]
        for parameter in group["params"]:
            value = complex(initial, initial) if parameter.is_complex() else initial
            state = self.state[parameter]
            state["step"] = scalar(0.0)
            state["sum"] = full_like(parameter, value).detach()

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        states = [self.state[p] for p in parameters]
        params, grads, sums = as_real_lists(
            parameters, [p.grad for p in parameters], [s["sum"] for s in states]
        )
        adagrad_step(
            params, grads, sums, [count_step(s) for s in states],
            number(group["lr"]), group["lr_decay"], group["weight_decay"], group["eps"],
            group["maximize"],
        )  # fmt: skip

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        rate = number(group["lr"]) / (1 + (count_step(state) - 1) * group["lr_decay"])
        parameter, gradient, total = as_real((parameter, gradient, state["sum"]))
        adagrad_update(
            parameter, gradient, total, rate, group["weight_decay"], group["eps"], group["maximize"],
            group["differentiable"],
        )  # fmt: skip
