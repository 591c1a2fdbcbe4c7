"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorplug.core import Tensor

from .ops.optimizers.fused import sgd_step, sgd_update
from .ops.optimizers.on_device import rate_of, sgd_step_on_device
from .optimizer import ParamsT
from .scalars import Scalar, on_device
from .state import number
from .step_optimizer import Step, StepOptimizer


class SGD(StepOptimizer):
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

    _step = Step(
        sgd_step,
        sgd_update,
        state=("momentum_buffer",),
        options=("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"),
        only_with={"momentum_buffer": "momentum"},
    )
    _not_negative = ("momentum", "weight_decay")
    _skips_on_device = True
    _refusal = None

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
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov, maximize=maximize, foreach=foreach, differentiable=differentiable,
            fused=fused,
        )  # fmt: skip

    def update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one dtype and device in one op, those with their first step in another."""
        if group["momentum"] == 0:
            self._update_chosen(parameters, [], group, True)
            return
        fresh: list[Tensor] = []
        known: list[Tensor] = []
        for parameter in parameters:
            (fresh if self._is_first(parameter) else known).append(parameter)
        for chosen, first in ((fresh, True), (known, False)):
            if chosen:
                states = [self._started(p, group) if first else self.state[p] for p in chosen]
                self._update_chosen(chosen, states, group, first)

    def _update_chosen(
        self,
        parameters: list[Tensor],
        states: list[dict[str, Any]],
        group: dict[str, Any],
        first: bool,
    ) -> None:
        lists = self._lists(parameters, states, group)
        lr, *options = self._numbers_of(self._step.options, parameters[0], group)
        options.append(first)
        found = self.found_inf_of(parameters[0])
        if found is not None or on_device(group["lr"]):
            rate, lr = rate_of(group["lr"], parameters[0])
            arguments: list[Any] = [*lists, rate, found, lr, *options]
            sgd_step_on_device(*arguments)
        else:
            self._step.op(*lists, lr, *options)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update one parameter in place."""
        first = state.get("momentum_buffer") is None
        buffer = self._started(parameter, group)["momentum_buffer"] if group["momentum"] else None
        sgd_update(
            parameter, gradient, buffer, group["lr"], group["momentum"], group["dampening"],
            group["weight_decay"], group["nesterov"], group["maximize"], first,
        )  # fmt: skip

    def update_sparse(
        self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update the rows of a parameter that its gradient has, in place."""
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead.: weight_decay "
                "makes a sparse gradient dense; set it to 0 for such parameters"
            )
        change = -gradient if group["maximize"] else gradient
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = change.detach().clone()
            else:
                buffer.mul_(momentum).add_(change, alpha=1 - group["dampening"])
            if buffer.is_sparse:
                buffer = buffer.coalesce()  # else it would grow with each step
            state["momentum_buffer"] = buffer
            change = change.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        parameter.add_(change, alpha=-number(group["lr"]))

    def _is_first(self, parameter: Tensor) -> bool:
        return self.state[parameter].get("momentum_buffer") is None

    def _started(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        if self._is_first(parameter) and group["momentum"] != 0:
            state["momentum_buffer"] = self._new("momentum_buffer", parameter, group)
        return state

    def _rate(self, parameter: Tensor, group: dict[str, Any]) -> Scalar:
        rate: Scalar = group["lr"]
        return rate
