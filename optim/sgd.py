"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor
from tensorplug.core.ops import zeros_like

from .amounts import is_there
from .groups import (
    check_fused,
    check_implementation,
    check_learning_rate,
    check_range,
)
from .ops.optimizers.fused import sgd_step, sgd_update
from .ops.optimizers.on_device import rate_of, sgd_step_on_device
from .optimizer import Optimizer, ParamsT
from .state import as_real_lists, number


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum if asked for.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimize, see :class:`~tensorplug.optim.Optimizer`.
    lr : float or Tensor
        The learning rate.
    momentum : float
        How much of the previous direction is kept.
    dampening : float
        How much less of the new gradient enters the momentum.
    weight_decay : float or Tensor
        The factor of the L2 penalty.
    nesterov : bool
        Look ahead along the momentum.
    maximize : bool
        Go up the gradient instead of down.
    foreach : bool, optional
        Whether one op updates all parameters, which a backend may do in one kernel; by default it does.
    fused : bool, optional
        The same; True asks for floating-point parameters, and lets a
        :class:`~tensorplug.amp.GradScaler` do without waiting for the device.
    differentiable : bool
        Record the update itself, for gradients through it; parameters must then be non-leaf
        tensors.

    Raises
    ------
    ValueError
        If an option is out of range.

    Notes
    -----
    With gradient :math:`g`, momentum :math:`\mu` and dampening :math:`\tau`:
    :math:`b \leftarrow \mu b + (1 - \tau) g`, starting with :math:`b = g`, then
    :math:`p \leftarrow p - lr \cdot b`. Nesterov's form uses :math:`g + \mu b` instead of :math:`b`
    (Sutskever et al., 2013).

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([4.0], requires_grad=True)
    >>> optimizer = tp.optim.SGD([x], lr=0.25)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([2.], requires_grad=True)
    """

    _skips_on_device = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_range(momentum >= 0.0, "momentum value", momentum)
        check_range(bool(weight_decay >= 0.0), "weight_decay value", weight_decay)
        check_implementation(foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self.param_groups)

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op."""
        if group["momentum"] == 0:
            self._update_chosen(parameters, group, True)
            return
        fresh = [p for p in parameters if self.state[p].get("momentum_buffer") is None]
        known = [p for p in parameters if self.state[p].get("momentum_buffer") is not None]
        for chosen, first in ((fresh, True), (known, False)):
            if chosen:
                self._update_chosen(chosen, group, first)

    def _update_chosen(self, parameters: list[Tensor], group: dict[str, Any], first: bool) -> None:
        gradients = [parameter.grad for parameter in parameters]
        buffers = []
        if group["momentum"] != 0:
            buffers = [_buffer(p, self.state[p]) for p in parameters]
        params, grads, buffers = as_real_lists(parameters, gradients, buffers)
        found = self.found_inf_of(parameters[0])
        if found is not None or is_there(group["lr"]):
            rate, lr = rate_of(group["lr"], parameters[0])
            sgd_step_on_device(
                params, grads, buffers, rate, found,
                lr, group["momentum"], group["dampening"],
                number(group["weight_decay"]), group["nesterov"], group["maximize"], first,
            )  # fmt: skip
            return
        sgd_step(
            params, grads, buffers,
            number(group["lr"]), group["momentum"], group["dampening"],
            number(group["weight_decay"]), group["nesterov"], group["maximize"], first,
        )  # fmt: skip

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        first = state.get("momentum_buffer") is None
        buffer = None if group["momentum"] == 0 else _buffer(parameter, state)
        sgd_update(
            parameter, gradient, buffer, group["lr"], group["momentum"], group["dampening"],
            group["weight_decay"], group["nesterov"], group["maximize"], first,
        )  # fmt: skip


def _buffer(parameter: Tensor, state: dict[str, Any]) -> Tensor:
    if state.get("momentum_buffer") is None:
        state["momentum_buffer"] = zeros_like(parameter, requires_grad=False)
    return state["momentum_buffer"]
